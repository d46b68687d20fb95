"""Token shards (.bin): 256 little-endian int32 (magic, version, token count, zeros), then uint16 tokens."""
import numpy as np

MAGIC, VERSION, HEADER_WORDS = 20240520, 1, 256


def write_shard(path, tokens):
    header = np.zeros(HEADER_WORDS, dtype="<i4")
    header[:3] = MAGIC, VERSION, len(tokens)
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(np.asarray(tokens, dtype="<u2").tobytes())


def read_shard(path):
    header = np.fromfile(path, dtype="<i4", count=HEADER_WORDS)
    if header[0] != MAGIC or header[1] != VERSION:
        raise ValueError(f"{path} is no token shard")
    return np.fromfile(path, dtype="<u2", offset=4 * HEADER_WORDS, count=header[2]).astype(np.int64)
