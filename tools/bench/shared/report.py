"""Tables and bounds of a comparison: print what was measured, fail when a bound is missed."""
import sys


class Report:
    def __init__(self, title):
        print(f"\n{title}", flush=True)
        self._title = title
        self._missed = []

    def table(self, header, rows):
        texts = [[str(cell) for cell in row] for row in [header, *rows]]
        widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
        for row in texts:
            print("  " + "  ".join(cell.rjust(width) if index else cell.ljust(width)
                                   for index, (cell, width) in enumerate(zip(row, widths))), flush=True)

    def bound(self, what, value, holds, limit):
        """Prints one requirement with its figure; `holds` says whether it is met."""
        print(f"  {'ok    ' if holds else 'MISSED'} {what}: {value} ({limit})", flush=True)
        if not holds:
            self._missed.append(f"{self._title.split(':')[0]}: {what}")

    def at_most(self, what, value, limit, form="{:.3g}"):
        self.bound(what, form.format(value), value <= limit, f"at most {form.format(limit)}")

    def at_least(self, what, value, limit, form="{:.3g}"):
        self.bound(what, form.format(value), value >= limit, f"at least {form.format(limit)}")

    def equal(self, what, one, other):
        self.bound(what, one, one == other, "equal" if one == other else f"against {other}")

    @staticmethod
    def finish_all(reports):
        """Ends the program: 0 when every bound of every report was met."""
        missed = [what for report in reports for what in report._missed]
        print(f"\n{len(missed)} bound(s) missed" + "".join(f"\n  {what}" for what in missed))
        sys.exit(1 if missed else 0)
