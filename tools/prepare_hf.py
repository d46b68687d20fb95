#!/usr/bin/env python3
"""Turns text into token shards with a Hugging Face tokenizer, as `atoll prepare` does with bytes.

    pip install tokenizers numpy
    tools/prepare_hf.py TOKENIZER.json --end-of-text '<|endoftext|>' --out DIR FILE_OR_FOLDER...

Reads .txt .md .rst .jsonl, also compressed with gzip; one document per file, or per line of .jsonl (the field
--field). Every document is stored as the end-of-text token, then its tokens. Writes DIR/train_NNNNNN.bin and
DIR/validation_NNNNNN.bin (format: src/data/README.md) and DIR/corpus.json, and prints the lines that the config
needs. Exit code 2 when the input is wrong.
"""
import argparse
import gzip
import json
import pathlib
import random
import sys

import numpy as np
from tokenizers import Tokenizer

MAGIC, VERSION, HEADER_WORDS = 20240520, 1, 256
SUFFIXES = (".txt", ".md", ".rst", ".jsonl")
LARGEST_VOCABULARY = 1 << 16  # tokens are stored in 16 bits
DOCUMENTS_AT_ONCE = 256


def fail(message):
    print(f"prepare_hf: {message}", file=sys.stderr)
    sys.exit(2)


def files_in(inputs):
    """All text files of files and folders, sorted within each."""
    for entry in inputs:
        if not entry.exists():
            fail(f"{entry}: no such file or folder")
        if entry.is_file():
            yield entry
            continue
        for path in sorted(entry.rglob("*")):
            if path.is_file() and path.name.removesuffix(".gz").endswith(SUFFIXES):
                yield path


def documents_of(path, field):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        if not path.name.removesuffix(".gz").endswith(".jsonl"):
            yield file.read()
            return
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)[field]
            except (ValueError, KeyError, TypeError):
                fail(f"{path}:{number}: no JSON object with the field {field!r}")


class ShardWriter:
    """One split: fills shards of at most `shard_tokens` tokens."""

    def __init__(self, folder, split, shard_tokens):
        self.folder, self.split, self.shard_tokens = folder, split, shard_tokens
        self.pending, self.pending_tokens = [], 0
        self.documents = self.tokens = self.shards = 0

    def add(self, tokens):
        self.documents += 1
        self.tokens += len(tokens)
        self.pending.append(np.asarray(tokens, dtype="<u2"))
        self.pending_tokens += len(tokens)
        while self.pending_tokens >= self.shard_tokens:
            together = np.concatenate(self.pending)
            self._write(together[: self.shard_tokens])
            self.pending = [together[self.shard_tokens :]]
            self.pending_tokens = len(self.pending[0])

    def finish(self):
        if self.pending_tokens:
            self._write(np.concatenate(self.pending))
        return {"documents": self.documents, "tokens": self.tokens, "shards": self.shards}

    def _write(self, tokens):
        header = np.zeros(HEADER_WORDS, dtype="<i4")
        header[:3] = MAGIC, VERSION, len(tokens)
        with open(self.folder / f"{self.split}_{self.shards:06d}.bin", "wb") as file:
            file.write(header.tobytes() + tokens.tobytes())
        self.shards += 1


def in_groups(documents, size):
    group = []
    for document in documents:
        group.append(document)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def prepare(options, tokenizer, end_of_text):
    """Writes the shards into options.out and returns what they hold."""
    train, validation = (ShardWriter(options.out, split, options.shard_tokens) for split in ("train", "validation"))
    chance = random.Random(options.seed)
    texts = (text for path in files_in(options.inputs) for text in documents_of(path, options.field))
    for group in in_groups(texts, DOCUMENTS_AT_ONCE):
        for encoding in tokenizer.encode_batch(group, add_special_tokens=False):
            split = validation if chance.random() < options.held_out else train
            split.add([end_of_text, *encoding.ids])
    return {"tokenizer": str(options.tokenizer), "vocabulary": tokenizer.get_vocab_size(), "end_of_text": end_of_text,
            "train": train.finish(), "validation": validation.finish()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=pathlib.Path, help="a tokenizer.json")
    parser.add_argument("inputs", type=pathlib.Path, nargs="+")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder that is empty or not there yet")
    parser.add_argument("--end-of-text", default="<|endoftext|>", help="the token that opens a document")
    parser.add_argument("--field", default="text", help="of JSON lines")
    parser.add_argument("--held-out", type=float, default=0.01, help="share of the documents kept for validation")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of held-out documents")
    parser.add_argument("--shard-tokens", type=int, default=50_000_000)
    options = parser.parse_args()
    if not options.tokenizer.is_file():
        fail(f"{options.tokenizer}: no such file")
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    end_of_text = tokenizer.token_to_id(options.end_of_text)
    if end_of_text is None:
        fail(f"{options.tokenizer} has no token {options.end_of_text!r}; choose one with --end-of-text")
    if tokenizer.get_vocab_size() > LARGEST_VOCABULARY:
        fail(f"a vocabulary of {tokenizer.get_vocab_size()} does not fit the shards' 16 bits")
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.iterdir()):
        fail(f"{options.out} has content already; remove it, or choose another --out")
    corpus = prepare(options, tokenizer, end_of_text)
    if corpus["train"]["documents"] == 0:
        fail("no document is left to train on")
    (options.out / "corpus.json").write_text(json.dumps(corpus, indent=2) + "\n")
    print(json.dumps(corpus, indent=2))
    print(f'\n[model]\nvocab = {corpus["vocabulary"]}\n[data]\ntrain = ["{options.out}/train_*.bin"]\n'
          f'validation = ["{options.out}/validation_*.bin"]\nend_of_text = {end_of_text}')


if __name__ == "__main__":
    main()
