"""Runs Atoll's verbs from a comparison."""
import json
import os
import pathlib
import subprocess
import sys
import tomllib

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def binary_directory(preset):
    directory = SOURCE / "build" / preset / "bin"
    if not (directory / "atoll").exists():
        sys.exit(f"no {directory}/atoll: build it first: cmake --preset {preset} && cmake --build --preset {preset}")
    return directory


class Atoll:
    """The programs of one build preset. A call raises on an exit code that it doesn't expect, after showing the
    program's words."""

    def __init__(self, preset):
        self.binaries = binary_directory(preset)

    def command(self, verb, *arguments):
        return [str(self.binaries / "atoll"), verb, *map(str, arguments)]

    def __call__(self, verb, *arguments, expected=(0,)):
        result = subprocess.run(self.command(verb, *arguments), capture_output=True, text=True, cwd=SOURCE)
        if result.returncode not in expected:
            sys.stderr.write(result.stdout[-4000:] + result.stderr[-4000:])
            raise RuntimeError(f"atoll {verb} {' '.join(map(str, arguments))} exited with {result.returncode}")
        return result.stdout

    def json(self, verb, *arguments, expected=(0,)):
        return json.loads(self(verb, *arguments, "--json", expected=expected))

    def resolved_config(self, config, *overrides):
        """Every key of the config as Atoll understands it."""
        sets = [part for override in overrides for part in ("--set", override)]
        return tomllib.loads(self("validate", config, *sets))


def one_thread():
    """An environment in which numerical libraries use one thread and choose their own kernels."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    for choice in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(choice, None)
    return environment
