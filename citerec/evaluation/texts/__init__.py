"""Written texts evaluated: by metrics, with intervals, tests and a page (`citerec eval-text`), and by people."""
