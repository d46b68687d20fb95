"""Results that are kept in a JSON file, so that a table grows over several invocations."""
import json


class Results:
    """What each (case, seed, steps) came to. A result of other settings than those of today does not count."""

    def __init__(self, path):
        self._path = path

    def _read(self):
        return json.loads(self._path.read_text()) if self._path.exists() else []

    def find(self, case, seed, steps, settings=None):
        """The result, or None. `settings`: tables of the resolved config; keys that came later are not compared."""
        for result in self._read():
            if (result["case"], result["seed"], result["steps"]) != (case, seed, steps):
                continue
            same = settings is None or all(
                settings[table].get(key) == value
                for table, keys in result["settings"].items() for key, value in keys.items())
            return result if same else None
        return None

    def of(self, case, steps):
        """By seed."""
        return {result["seed"]: result for result in self._read() if (result["case"], result["steps"]) == (case, steps)}

    def keep(self, result):
        identity = [result[key] for key in ("case", "seed", "steps")]
        others = [other for other in self._read() if [other[key] for key in ("case", "seed", "steps")] != identity]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps([*others, result], indent=1) + "\n")
        draft.replace(self._path)
