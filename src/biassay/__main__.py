"""Run the command line with `python -m biassay`."""

from biassay.cli import main

if __name__ == "__main__":
    main()
