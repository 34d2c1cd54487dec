"""Backtracking with arrays: sudoku and queens, and Knuth's knight by Warnsdorff's rule."""
import numpy as np

PUZZLES = [
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "000260701680070090190004500820100040004602900050003028009300074040050036703018000",
    "300200000000107000706030500070009080900020004010800050009040301000702000000008006",
]
calls = 0


def candidates(grid, r, c):
    used = np.zeros(10, dtype=bool)
    used[grid[r]] = True
    used[grid[:, c]] = True
    br, bc = 3 * (r // 3), 3 * (c // 3)
    used[grid[br:br + 3, bc:bc + 3].ravel()] = True
    return np.flatnonzero(~used[1:]) + 1


def solve(grid):
    global calls
    calls += 1
    empty = np.argwhere(grid == 0)
    if len(empty) == 0:
        return True
    best = None
    for r, c in empty:
        options = candidates(grid, r, c)
        if best is None or len(options) < len(best[2]):
            best = (r, c, options)
            if len(options) <= 1:
                break
    r, c, options = best
    for v in options:
        grid[r, c] = v
        if solve(grid):
            return True
    grid[r, c] = 0
    return False


def queens(n):
    solutions = 0
    columns = np.zeros(n, dtype=bool)
    up = np.zeros(2 * n, dtype=bool)
    down = np.zeros(2 * n, dtype=bool)

    def place(row):
        nonlocal solutions
        if row == n:
            solutions += 1
            return
        for c in range(n):
            if not (columns[c] or up[row + c] or down[row - c + n]):
                columns[c] = up[row + c] = down[row - c + n] = True
                place(row + 1)
                columns[c] = up[row + c] = down[row - c + n] = False

    place(0)
    return solutions


def knights_tour(n):
    moves = np.array([(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)])
    board = -np.ones((n, n), dtype=int)

    def free(p):
        q = p + moves
        q = q[np.all((q >= 0) & (q < n), axis=1)]
        return q[board[q[:, 0], q[:, 1]] < 0]

    p = np.array([0, 0])
    for k in range(n * n):
        board[tuple(p)] = k
        options = free(p)
        if len(options) == 0:
            break
        p = options[np.argmin([len(free(q)) for q in options])]
    return board, k


for text in PUZZLES:
    grid = np.array(list(text), dtype=int).reshape(9, 9)
    before = calls
    done = solve(grid)
    rows = all(len(set(row)) == 9 for row in grid) and (grid.sum(axis=0) == 45).all()
    print(done, rows, calls - before, "".join(map(str, grid[0])))
print("queens", [queens(n) for n in range(4, 11)])
board, k = knights_tour(30)
print("knight", k, board[0, :5], (board >= 0).sum())
