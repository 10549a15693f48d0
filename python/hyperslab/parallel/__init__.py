"""The parallel cost model: processes that share data servers, in formulas, on published tables, and simulated."""
