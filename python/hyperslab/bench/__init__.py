"""Measure formats fairly: from study files to cells, from cells to trials, from trials to results and verdicts."""
