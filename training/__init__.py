"""How the embedded starter network is made: scenes are rendered, a small network learns from them, and is measured.

``python -m training`` does all of it; docs/starter.md says how well it works. None of it is installed.
"""
