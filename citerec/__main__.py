"""`python -m citerec` is the command `citerec`."""

from citerec.cli.main import main

if __name__ == "__main__":  # not in processes that begin anew
    main()
