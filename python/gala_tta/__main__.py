"""`python -m gala_tta`: the program where it was built, and `export`."""

from gala_tta._program import main

if __name__ == "__main__":
    raise SystemExit(main())
