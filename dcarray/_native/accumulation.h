/* Scans by the inner loops of ufuncs, on several threads.
 *
 * NumPy goes along one line after the other, where each operation waits for the one before it, and keeps the interpreter's
 * lock.  Here many lines go along the axis together: the loop does one operation of each, and then the next.  Each element
 * comes of the same operations. */

enum { SCAN_AXES = 12, NARROW = 16 }; /* the latter: elements of a short axis */
enum { STRIP_BYTES = 4096, LEAST_STRIP = 64, FEW_LINES = 32 }; /* neighbours that go together; lines that are no neighbours */
enum { SAME_SETS = 1024 }; /* bytes: lines so far apart, or a multiple, would push each other out of the near cache */

typedef struct {
    Inner *code;
    void *data;
    int ndim, axis, across; /* the last: the axis of neighbours, or -1 where lines along the axis are better */
    Py_ssize_t width, lengths[SCAN_AXES], in[SCAN_AXES], out[SCAN_AXES];
    char *from, *to;
    Py_ssize_t strip, strips, pieces, next; /* elements that go together, how many of these there are, and of all pieces */
    int raised;
} Scan;

/* Go along the axis from this place on, with so many neighbours. */
static void
scan_piece(Scan *s, char *from, char *to, Py_ssize_t many)
{
    Py_ssize_t n = s->lengths[s->axis], step = s->in[s->axis], stride = s->out[s->axis];
    if (s->across < 0) {
        char *pointers[3] = {to, from + step, to + stride};
        Py_ssize_t rest = n - 1, strides[3] = {stride, step, stride};
        memcpy(to, from, s->width);
        if (rest > 0)
            s->code(pointers, &rest, strides, s->data);
        return;
    }
    for (Py_ssize_t k = 0; k < many; k++)
        memcpy(to + k * s->out[s->across], from + k * s->in[s->across], s->width);
    for (Py_ssize_t k = 1; k < n; k++) {
        char *pointers[3] = {to + (k - 1) * stride, from + k * step, to + k * stride};
        Py_ssize_t strides[3] = {s->out[s->across], s->in[s->across], s->out[s->across]};
        s->code(pointers, &many, strides, s->data);
    }
}

/* Do pieces until all are begun. */
static void *
scan_pieces(void *argument)
{
    Scan *s = argument;
    clear_flags();
    for (;;) {
        Py_ssize_t piece = next_piece(&s->next, 1), rest = piece, many = 1;
        char *from = s->from, *to = s->to;
        if (piece >= s->pieces)
            break;
        if (s->across >= 0) {
            Py_ssize_t first = rest % s->strips * s->strip;
            rest /= s->strips;
            many = s->lengths[s->across] - first < s->strip ? s->lengths[s->across] - first : s->strip;
            from += first * s->in[s->across];
            to += first * s->out[s->across];
        }
        for (int axis = s->ndim - 1; axis >= 0; axis--)
            if (axis != s->axis && axis != s->across) {
                from += rest % s->lengths[axis] * s->in[axis];
                to += rest % s->lengths[axis] * s->out[axis];
                rest /= s->lengths[axis];
            }
        scan_piece(s, from, to, many);
    }
    note_flags(&s->raised, fetestexcept(FLAGS));
    clear_flags();
    return NULL;
}

/* accumulate(ufunc, x, axis, out, threads): what `ufunc.accumulate` does, without a word of floating-point exceptions:
 * true, or false if nothing was done, or something was raised. */
static PyObject *
accumulate_lines(PyObject *module, PyObject *args)
{
    PyObject *ufunc, *x, *made;
    int threads, nearest = -1;
    Scan s = {0};
    Array *a, *r;
    PyThreadState *state;
    if (!PyArg_ParseTuple(args, "OOiOi", &ufunc, &x, &s.axis, &made, &threads))
        return NULL;
    if (NewArray == NULL || Py_TYPE(x) != PlainClass || Py_TYPE(made) != PlainClass)
        Py_RETURN_FALSE;
    a = (Array *)x;
    r = (Array *)made;
    if (!(a->flags & r->flags & ALIGNED) || !(r->flags & WRITEABLE) || !is_known(a->dtype) || a->dtype != r->dtype ||
        a->ndim != r->ndim || a->ndim > SCAN_AXES || s.axis < 0 || s.axis >= a->ndim)
        Py_RETURN_FALSE;
    s.ndim = a->ndim;
    s.width = Known[a->dtype->type & 127].width;
    s.pieces = 1;
    s.across = -1;
    for (int axis = 0; axis < s.ndim; axis++) {
        s.lengths[axis] = a->shape[axis];
        s.in[axis] = a->strides[axis];
        s.out[axis] = r->strides[axis];
        if (a->shape[axis] != r->shape[axis] || a->shape[axis] == 0)
            Py_RETURN_FALSE;
        if (axis != s.axis && s.lengths[axis] >= NARROW && (nearest < 0 || labs((long)s.out[axis]) < labs((long)s.out[nearest])))
            nearest = axis;
    }
    if (ufunc == np_multiply && a->dtype->kind == 'c')
        Py_RETURN_FALSE; /* the vectors of its loop round otherwise than what goes element by element */
    Loop *loop = loop_of(ufunc, a->dtype->type, a->dtype->type);
    if (loop == NULL || loop->result != (PyObject *)a->dtype)
        Py_RETURN_FALSE;
    s.code = loop->code;
    s.data = loop->data;
    if (nearest >= 0) {
        Py_ssize_t share = s.lengths[nearest] / (4 * (Py_ssize_t)(threads < 1 ? 1 : threads)), most = STRIP_BYTES / s.width;
        if (labs((long)s.out[nearest]) < labs((long)s.out[s.axis])) {
            s.across = nearest;
            s.strip = most < share ? most : share < LEAST_STRIP ? LEAST_STRIP : share;
        }
        else if (s.in[nearest] % SAME_SETS != 0 && s.out[nearest] % SAME_SETS != 0) {
            s.across = nearest;
            s.strip = FEW_LINES;
        }
    }
    for (int axis = 0; axis < s.ndim; axis++)
        if (axis != s.axis && axis != s.across)
            s.pieces *= s.lengths[axis];
    if (s.across >= 0) {
        s.strips = (s.lengths[s.across] + s.strip - 1) / s.strip;
        s.pieces *= s.strips;
    }
    s.from = a->data;
    s.to = r->data;
    state = PyEval_SaveThread();
    share_work(scan_pieces, &s, threads > s.pieces ? (int)s.pieces : threads);
    PyEval_RestoreThread(state);
    return PyBool_FromLong(!s.raised);
}
