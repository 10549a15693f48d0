"""How everything is measured: one loop, one stop rule, one journal, one proof of cache states, one statistics."""
