"""Measure formats fairly: study files become cells, cells become trials, trials become results and verdicts."""
