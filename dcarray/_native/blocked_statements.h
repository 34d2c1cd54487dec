/* Statements of a recording that NumPy's inner loops do, a block of elements after the other, on several threads; see
 * blocked_statements.py.
 *
 * What only later statements of the same block need is kept in parts of a thread's own memory, which stay in the nearest
 * cache, and never stored. */

#include "conversions.h"
#include "shared_work.h"

enum { BLOCK_STEPS = 96, BLOCK_ARRAYS = 48, BLOCK_PARTS = 24, BLOCK_AXES = 12 };
enum { BLOCKED = 1 << 15, NARROW = 16, STRIP = 256 }; /* bytes of a part; elements of a short axis, and of a part of another one */

typedef struct {
    Inner *code;
    void *data;
    int count;     /* operands */
    int folds;     /* or -1: which of the folds it is */
    char sums;     /* the dtype of floating-point numbers that it sums up, or 0 */
    int places[4]; /* of the operands and then of the result: the number of an array, or ~ the number of a part */
    Py_ssize_t widths[4];
} BlockStep;

typedef struct {
    int steps, arrays, parts, folds;
    double zero; /* what NumPy begins a sum with */
    Py_ssize_t widths[BLOCK_PARTS];
    char letters[BLOCK_ARRAYS];
    BlockStep each[]; /* `steps` of them */
} BlockProgram;

/* One run of a program: the axes from the outermost to the innermost one, merged where they can be. */
typedef struct {
    const BlockProgram *program;
    int axes, strips_first;
    Py_ssize_t lengths[BLOCK_AXES];
    char *bases[BLOCK_ARRAYS];
    Py_ssize_t strides[BLOCK_ARRAYS][BLOCK_AXES];
    Py_ssize_t rows, columns, row_blocks, column_blocks, blocks, grain; /* of a block, and of these how many */
    Py_ssize_t next;                                                    /* the block that nobody has begun */
    Py_ssize_t memory;
    char *partial[BLOCK_STEPS]; /* what each block gives for a fold */
    int raised[BLOCK_STEPS];
} BlockRun;

/* The bytes of a part. */
static inline Py_ssize_t
part_size(const BlockRun *r, int part)
{
    return (r->rows * r->columns * r->program->widths[part] + 63) & ~(Py_ssize_t)63;
}

static const char BlockName[] = "dcarray.blocked_statements";

static void
free_program(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, BlockName));
}

/* The loop of a step that is a ufunc, or "where" or "cast", for these dtypes: the operands' and the result's. */
static int
find_block_loop(BlockStep *s, PyObject *what, const char *letters)
{
    if (PyUnicode_Check(what)) {
        if (PyUnicode_CompareWithASCIIString(what, "where") == 0 && s->count == 3)
            s->code = letters[1] == letters[3] && letters[2] == letters[3] ? choice(s->widths[3]) : NULL;
        else
            s->code = s->count == 1 ? conversion(letters[0], letters[1]) : NULL;
        return s->code != NULL;
    }
    Tables *t = (Tables *)what;
    if (t->name == NULL || PyDict_GetItemString(Loopable, t->name) != what || t->nout != 1)
        return 0;
    if (t->nin != (s->folds < 0 ? s->count : 2))
        return 0;
    for (int k = 0; k < t->ntypes; k++) {
        const char *types = t->types + k * t->nargs;
        int same = 1;
        for (int j = 0; j <= t->nin; j++)
            same &= dtype_numbered(types[j]) == Known[letters[s->folds < 0 ? j : 0] & 127].dtype;
        if (same) {
            s->code = t->functions[k];
            s->data = t->data == NULL ? NULL : t->data[k];
            return s->code != NULL;
        }
    }
    return 0;
}

/* make_block_program(steps, letters, parts, zero): a program of steps `(ufunc or "where" or "cast", dtypes, folds, place, ...)`
 * on arrays of these dtypes, with parts of these; None if some step has no loop.  `folds`: whether it folds its only
 * operand into its result.  NumPy begins a sum with `zero`. */
static PyObject *
make_block_program(PyObject *module, PyObject *args)
{
    PyObject *steps, *capsule;
    const char *letters, *parts;
    Py_ssize_t arrays, many, count;
    double zero;
    BlockProgram *p;
    if (!PyArg_ParseTuple(args, "O!s#s#d", &PyTuple_Type, &steps, &letters, &arrays, &parts, &many, &zero))
        return NULL;
    count = PyTuple_GET_SIZE(steps);
    if (NewArray == NULL || count > BLOCK_STEPS || arrays > BLOCK_ARRAYS || many > BLOCK_PARTS)
        Py_RETURN_NONE;
    p = PyMem_Calloc(1, sizeof(BlockProgram) + count * sizeof(BlockStep));
    if (p == NULL)
        return PyErr_NoMemory();
    p->steps = (int)count;
    p->arrays = (int)arrays;
    p->parts = (int)many;
    p->zero = zero;
    memcpy(p->letters, letters, arrays);
    for (int k = 0; k < many; k++)
        p->widths[k] = Known[parts[k] & 127].width;
    for (Py_ssize_t k = 0; k < count; k++) {
        BlockStep *s = p->each + k;
        PyObject *step = PyTuple_GET_ITEM(steps, k), *what = PyTuple_GET_ITEM(step, 0);
        const char *types = PyUnicode_AsUTF8(PyTuple_GET_ITEM(step, 1));
        int fold = PyObject_IsTrue(PyTuple_GET_ITEM(step, 2));
        s->count = (int)PyTuple_GET_SIZE(step) - 4;
        s->folds = fold > 0 ? p->folds++ : -1;
        if (types == NULL || s->count < 1 || s->count > 3)
            goto none;
        for (int j = 0; j <= s->count; j++) {
            long place = PyLong_AsLong(PyTuple_GET_ITEM(step, 3 + j));
            if (place >= arrays || ~place >= many)
                goto none;
            s->places[j] = (int)place;
            s->widths[j] = Known[types[j] & 127].width;
        }
        if (!find_block_loop(s, what, types))
            goto none;
        s->sums = fold > 0 && what == np_add && strchr("fdFD", types[0]) ? types[0] : 0;
    }
    capsule = PyCapsule_New(p, BlockName, free_program);
    if (capsule == NULL)
        PyMem_Free(p);
    return capsule;
none:
    PyMem_Free(p);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* Fold some elements into `result`, which has the fold of those before unless these are the first. */
static void
fold_elements(BlockStep *s, char *result, char *at, Py_ssize_t stride, Py_ssize_t n, int first)
{
    Py_ssize_t rest = n - first, strides[3] = {0, stride, 0};
    char *pointers[3] = {result, at + first * stride, result};
    if (first)
        memcpy(result, at, s->widths[0]);
    if (rest > 0)
        s->code(pointers, &rest, strides, s->data);
}

static void
do_statement_block(BlockRun *r, Py_ssize_t block, char *const *parts, int *raised)
{
    const BlockProgram *p = r->program;
    char *at[BLOCK_ARRAYS];
    int inner = r->axes - 1, outer = r->axes - 2;
    Py_ssize_t column, row, rest, n, rows;
    if (r->strips_first) {
        column = block / (r->blocks / r->column_blocks);
        rest = block % (r->blocks / r->column_blocks);
    }
    else {
        column = block % r->column_blocks;
        rest = block / r->column_blocks;
    }
    row = rest % r->row_blocks * r->rows;
    rest /= r->row_blocks;
    column *= r->columns;
    n = r->lengths[inner] - column < r->columns ? r->lengths[inner] - column : r->columns;
    rows = outer < 0 ? 1 : r->lengths[outer] - row < r->rows ? r->lengths[outer] - row : r->rows;
    for (int k = 0; k < p->arrays; k++)
        at[k] = r->bases[k] + column * r->strides[k][inner] + (outer < 0 ? 0 : row * r->strides[k][outer]);
    for (int axis = outer - 1; axis >= 0; axis--) {
        Py_ssize_t where = rest % r->lengths[axis];
        rest /= r->lengths[axis];
        if (where)
            for (int k = 0; k < p->arrays; k++)
                at[k] += where * r->strides[k][axis];
    }
    for (int k = 0; k < p->steps; k++) {
        BlockStep *s = (BlockStep *)p->each + k;
        char *pointers[4];
        Py_ssize_t strides[4], next[4], all = n * rows;
        int dense = 1, flags, last = s->count + (s->folds < 0);
        for (int j = 0; j < last; j++) {
            int place = s->places[j];
            if (place < 0) {
                pointers[j] = parts[~place];
                strides[j] = s->widths[j];
                next[j] = n * s->widths[j];
                continue;
            }
            pointers[j] = at[place];
            strides[j] = r->strides[place][inner];
            next[j] = outer < 0 ? 0 : r->strides[place][outer];
            dense &= next[j] == n * strides[j];
        }
        if (s->folds >= 0) {
            char *result = r->partial[s->folds] + block * s->widths[0];
            if (dense || rows == 1)
                fold_elements(s, result, pointers[0], strides[0], all, 1);
            else
                for (Py_ssize_t one = 0; one < rows; one++)
                    fold_elements(s, result, pointers[0] + one * next[0], strides[0], n, one == 0);
        }
        else if (dense || rows == 1)
            s->code(pointers, &all, strides, s->data);
        else
            for (Py_ssize_t one = 0; one < rows; one++) {
                s->code(pointers, &n, strides, s->data);
                for (int j = 0; j < last; j++)
                    pointers[j] += next[j];
            }
        flags = fetestexcept(FLAGS);
        if (flags) { /* rarely: some loops begin and end without any */
            raised[k] |= flags;
            feclearexcept(FLAGS);
        }
    }
}

/* Do blocks until all are begun. */
static void *
do_statement_blocks(void *argument)
{
    BlockRun *r = argument;
    const BlockProgram *p = r->program;
    char *memory = malloc(r->memory + 64), *parts[BLOCK_PARTS], *at;
    int raised[BLOCK_STEPS] = {0};
    if (memory == NULL)
        return NULL; /* another thread does them */
    at = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    for (int k = 0; k < p->parts; k++) {
        parts[k] = at;
        at += part_size(r, k);
    }
    clear_flags();
    for (;;) {
        Py_ssize_t first = next_piece(&r->next, r->grain);
        if (first >= r->blocks)
            break;
        for (Py_ssize_t block = first; block < first + r->grain && block < r->blocks; block++)
            do_statement_block(r, block, parts, raised);
    }
    for (int k = 0; k < p->steps; k++)
        note_flags(&r->raised[k], raised[k]);
    free(memory);
    return NULL;
}

/* Exchange two axes. */
static void
swap_axes(BlockRun *r, int a, int b)
{
    Py_ssize_t length = r->lengths[a];
    r->lengths[a] = r->lengths[b];
    r->lengths[b] = length;
    for (int k = 0; k < r->program->arrays; k++) {
        Py_ssize_t stride = r->strides[k][a];
        r->strides[k][a] = r->strides[k][b];
        r->strides[k][b] = stride;
    }
}

/* Does axis a belong within axis b: do elements lie nearer to each other along it? */
static int
lies_within(BlockRun *r, int a, int b)
{
    for (int k = r->program->arrays - 1; k >= 0; k--) { /* results are the last ones */
        Py_ssize_t one = r->strides[k][a] < 0 ? -r->strides[k][a] : r->strides[k][a];
        Py_ssize_t two = r->strides[k][b] < 0 ? -r->strides[k][b] : r->strides[k][b];
        if (one && two && one != two)
            return one < two;
    }
    return 0;
}

/* Order and merge the axes, and divide them into blocks. */
static void
arrange_blocks(BlockRun *r)
{
    const BlockProgram *p = r->program;
    int kept = 0;
    for (int a = 1; a < r->axes; a++)
        for (int b = a; b > 0 && lies_within(r, b - 1, b); b--)
            swap_axes(r, b - 1, b);
    for (int a = 0; a < r->axes; a++) { /* into the one before, where all arrays allow it */
        int merges = kept > 0;
        for (int k = 0; merges && k < p->arrays; k++)
            merges = r->strides[k][kept - 1] == r->strides[k][a] * r->lengths[a];
        if (merges)
            r->lengths[kept - 1] *= r->lengths[a];
        else
            r->lengths[kept++] = r->lengths[a];
        for (int k = 0; k < p->arrays; k++)
            r->strides[k][kept - 1] = r->strides[k][a];
    }
    r->axes = kept;
    r->strips_first = 0;
    if (kept > 1 && r->lengths[kept - 1] < NARROW) { /* go along the longest axis instead, in short strips */
        int longest = 0;
        for (int a = 1; a < kept; a++)
            if (r->lengths[a] > r->lengths[longest])
                longest = a;
        r->strips_first = r->lengths[longest] >= 4 * NARROW;
        if (r->strips_first)
            for (int a = longest; a < kept - 1; a++)
                swap_axes(r, a, a + 1);
    }
    Py_ssize_t length = r->lengths[kept - 1], widest = 1, most;
    for (int k = 0; k < p->parts; k++)
        widest = p->widths[k] > widest ? p->widths[k] : widest;
    for (int k = 0; k < p->arrays; k++)
        widest = Known[p->letters[k] & 127].width > widest ? Known[p->letters[k] & 127].width : widest;
    most = r->strips_first ? STRIP : BLOCKED / widest;
    r->column_blocks = (length + most - 1) / most;
    r->columns = (length + r->column_blocks - 1) / r->column_blocks;
    r->column_blocks = (length + r->columns - 1) / r->columns;
    r->rows = r->row_blocks = 1;
    r->blocks = r->column_blocks;
    if (kept > 1) {
        r->rows = BLOCKED / widest / r->columns < 1 ? 1 : BLOCKED / widest / r->columns;
        if (r->rows > r->lengths[kept - 2])
            r->rows = r->lengths[kept - 2];
        r->row_blocks = (r->lengths[kept - 2] + r->rows - 1) / r->rows;
        r->blocks *= r->row_blocks;
    }
    for (int a = 0; a < kept - 2; a++)
        r->blocks *= r->lengths[a];
    r->memory = 0;
    for (int k = 0; k < p->parts; k++)
        r->memory += part_size(r, k);
}

/* Note an array of the run: 0, without an exception, if its elements are not as the program says. */
static int
place_array(BlockRun *r, int k, PyObject *x, PyObject *shape)
{
    Array *a = (Array *)x;
    int ndim = (int)PyTuple_GET_SIZE(shape);
    if (Py_TYPE(x) != PlainClass || !(a->flags & ALIGNED) || !is_known(a->dtype) || a->dtype->type != r->program->letters[k])
        return 0;
    if (a->ndim > ndim)
        return 0;
    r->bases[k] = a->data;
    for (int axis = 0; axis < ndim; axis++) {
        int own = axis - ndim + a->ndim;
        Py_ssize_t length = r->lengths[axis];
        r->strides[k][axis] = own < 0 || a->shape[own] == 1 ? 0 : a->strides[own];
        if (own >= 0 && a->shape[own] != length && a->shape[own] != 1)
            return 0;
    }
    return 1;
}

/* Fold what the blocks have given for each fold, in order, into the arrays of the results. */
static void
fold_partials(BlockRun *r)
{
    const BlockProgram *p = r->program;
    for (int k = 0; k < p->steps; k++) {
        BlockStep *s = (BlockStep *)p->each + k;
        if (s->folds < 0)
            continue;
        char *result = r->bases[s->places[1]];
        fold_elements(s, result, r->partial[s->folds], s->widths[0], r->blocks, 1);
        for (int part = 0; s->sums && part < (s->sums == 'F' || s->sums == 'D' ? 2 : 1); part++)
            if (s->sums == 'f' || s->sums == 'F')
                ((float *)result)[part] += (float)p->zero;
            else
                ((double *)result)[part] += p->zero;
        r->raised[k] |= fetestexcept(FLAGS);
        clear_flags();
    }
}

/* run_block_program(program, shape, arrays, threads): run it on arrays that are broadcast to this shape, or written.  The
 * floating-point exceptions that each step has raised, as NumPy's bits, or None if nothing was done. */
static PyObject *
run_block_program(PyObject *module, PyObject *args)
{
    PyObject *capsule, *shape, *arrays, *found;
    int threads, ready = 1, ndim, folds = 0;
    BlockProgram *p;
    BlockRun r;
    PyThreadState *state;
    if (!PyArg_ParseTuple(args, "OO!O!i", &capsule, &PyTuple_Type, &shape, &PyTuple_Type, &arrays, &threads))
        return NULL;
    p = PyCapsule_GetPointer(capsule, BlockName);
    if (p == NULL)
        return NULL;
    ndim = (int)PyTuple_GET_SIZE(shape);
    if (PyTuple_GET_SIZE(arrays) != p->arrays || ndim > BLOCK_AXES || ndim == 0)
        Py_RETURN_NONE;
    r.program = p;
    r.axes = ndim;
    for (int axis = 0; axis < ndim; axis++) {
        r.lengths[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis));
        if (r.lengths[axis] <= 0) {
            if (PyErr_Occurred())
                return NULL;
            Py_RETURN_NONE;
        }
    }
    for (int k = 0; k < p->arrays; k++)
        if (!place_array(&r, k, PyTuple_GET_ITEM(arrays, k), shape))
            Py_RETURN_NONE;
    arrange_blocks(&r);
    r.next = 0;
    memset(r.raised, 0, sizeof(r.raised));
    threads = threads > r.blocks ? (int)r.blocks : threads;
    r.grain = r.blocks / ((Py_ssize_t)threads * 8) < 1 ? 1 : r.blocks / ((Py_ssize_t)threads * 8);
    for (int k = 0; k < p->steps && ready; k++)
        if (p->each[k].folds >= 0) {
            r.partial[folds] = malloc(r.blocks * p->each[k].widths[0]);
            ready = r.partial[folds++] != NULL;
        }
    if (ready) {
        state = PyEval_SaveThread();
        share_work(do_statement_blocks, &r, threads);
        ready = r.next >= r.blocks; /* else there was no memory, and nothing was begun */
        if (ready)
            fold_partials(&r);
        PyEval_RestoreThread(state);
    }
    for (int k = 0; k < folds; k++)
        free(r.partial[k]);
    if (!ready)
        Py_RETURN_NONE;
    found = PyTuple_New(p->steps);
    for (int k = 0; found != NULL && k < p->steps; k++) {
        set_or_clear(&found, k, PyLong_FromLong(numpy_bits(r.raised[k])));
    }
    return found;
}
