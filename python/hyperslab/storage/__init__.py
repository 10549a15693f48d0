"""How arrays are laid out, said once: codecs and their chains, and the layout of a stored array."""
