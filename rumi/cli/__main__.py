"""``python -m rumi.cli``: the command line where the script is not on the path."""

from rumi.cli import main

if __name__ == "__main__":
    main()
