"""`python -m parityscope`: the command line, for environments whose scripts are not on the path."""

from parityscope.apps.cli import main

if __name__ == "__main__":
    main()
