"""Progress of long work on standard error."""

from citerec.groundwork.progress_bar import progress_bar as progress_bar
