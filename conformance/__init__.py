"""Test suites of other projects, run on dcarray's arrays: each module is a command."""
