"""What both programs use and no table needs: paths, lock, progress, errors, escaping."""
