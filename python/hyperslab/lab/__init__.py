"""How anything is measured: one loop, one stop rule, one journal, one proof of cache states, one set of statistics."""
