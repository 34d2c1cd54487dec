/* Operators as steps of op sequences, and how op sequences are learned; see op_sequences.h. */

static Deferred *
new_deferred(OpSequence *c)
{
    Deferred *s = PyObject_New(Deferred, &DeferredType);
    if (s == NULL)
        return NULL;
    memset((char *)s + sizeof(PyObject), 0, sizeof(Deferred) - sizeof(PyObject));
    s->sequence = (OpSequence *)Py_NewRef((PyObject *)c);
    if (!c->blocks)
        s->shape = Py_NewRef(c->shape);
    s->thread = PyThread_get_thread_ident();
    s->after = AllDeferred;
    if (AllDeferred != NULL)
        AllDeferred->before = s;
    AllDeferred = s;
    s->read = PyObject_New(PendingRead, &PendingReadType);
    if (s->read == NULL) {
        Py_DECREF(s);
        return NULL;
    }
    s->read->owner = s;
    return s;
}

/* Do other options mean the same for an op sequence?  They are known from then on. */
static int
has_same_options(OpSequence *c, PyObject *options)
{
    static const char *const names[] = {"eager_below", "threads", "fastmath", "debug", "device", "target"};
    int same = options != NULL && options != Py_None;
    for (size_t k = 0; same && k < sizeof(names) / sizeof(names[0]); k++) {
        PyObject *one = PyObject_GetAttrString(options, names[k]);
        PyObject *other = one == NULL ? NULL : PyObject_GetAttrString(c->options, names[k]);
        same = other != NULL && PyObject_RichCompareBool(one, other, Py_EQ) == 1;
        Py_XDECREF(one);
        Py_XDECREF(other);
    }
    if (same)
        Py_XSETREF(c->options, Py_NewRef(options));
    return same;
}

/* Is what an op sequence was learned under in force: the options and NumPy's error state? */
static int
is_in_force(OpSequence *c)
{
    PyObject *options = NULL, *state = NULL, *process;
    int same = PyContextVar_Get(Scoped, NULL, &options) == 0 && PyContextVar_Get(ErrorState, NULL, &state) == 0;
    process = options == Py_None ? PyDict_GetItemWithError(Options, Process) : options;
    same = same && state == c->state && (process == c->options || has_same_options(c, process));
    PyErr_Clear();
    Py_XDECREF(options);
    Py_XDECREF(state);
    return same;
}

/* Is nothing pending on a large array, or not any more?  To have it computed takes time, in which another thread may
 * begin to record. */
static inline int
make_idle(PyObject *x)
{
    return is_idle(x) || (compute_pending(x) && !another_records());
}

/* Is this all of a large array in C order, which nothing is pending on, of the shape and a dtype of the op sequence's?
 */
static PyObject *
take_array(Deferred *s, PyObject *x, char letter)
{
    OpSequence *c = s->sequence;
    PyObject *store, *shape = is_large(x) ? AT(x, Shape) : NULL;
    Array *mem;
    int ndim;
    if (shape == NULL || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > SEEN || !make_idle(x) ||
        (s->shape != NULL && s->shape != shape && PyObject_RichCompareBool(s->shape, shape, Py_EQ) != 1))
        return NULL;
    if ((AT(x, Store) == NULL && AT(x, Origin) != NULL && !(c->blocks && PyTuple_CheckExact(AT(x, Origin)))) ||
        (store = store_of(x)) == NULL)
        return NULL;
    mem = (Array *)AT(store, Mem);
    ndim = (int)PyTuple_GET_SIZE(shape);
    if (AT(x, Index) != Py_None || AT(store, Head) != Py_None || AT(store, Exports) != Py_None ||
        AT(store, Remote) != Py_None || (!c->blocks && AT(store, EagerSite) != Py_None) || Py_TYPE((PyObject *)mem) != PlainClass)
        return NULL;
    if (mem->ndim != ndim || (mem->flags & (IN_C_ORDER | ALIGNED)) != (IN_C_ORDER | ALIGNED) || !is_known(mem->dtype) ||
        mem->dtype->type != letter || PyUnicode_GET_LENGTH(AT(store, Char)) != 1)
        return NULL;
    for (int k = 0; k < ndim; k++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k)) != mem->shape[k])
            return NULL;
    if (c->blocks && s->shape == NULL) {
        s->size = elements_of((PyObject *)mem);
        if (s->size < SmallLimit || s->size > PyLong_AsSsize_t(c->size))
            return NULL;
        s->shape = Py_NewRef(shape);
    }
    return store;
}

/* Is this some of the rows of a store, as they lie in C order?  Then the store, borrowed, which row is the first, and
 * the bytes before it; else NULL, without an exception. */
static PyObject *
rows_of(PyObject *x, Py_ssize_t *row, Py_ssize_t *skipped)
{
    PyObject *shape = is_large(x) ? AT(x, Shape) : NULL, *index = AT(x, Index);
    PyObject *store = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x);
    Array *mem = store == NULL ? NULL : (Array *)AT(store, Mem), *view = (Array *)AT(x, View);
    Py_ssize_t width, count;
    if (shape == NULL || mem == NULL || Py_TYPE((PyObject *)mem) != PlainClass || mem->ndim < 1 || !PyTuple_CheckExact(shape) ||
        PyTuple_GET_SIZE(shape) != mem->ndim || (mem->flags & (IN_C_ORDER | ALIGNED)) != (IN_C_ORDER | ALIGNED) ||
        !is_known(mem->dtype))
        return NULL;
    width = Known[mem->dtype->type & 127].width;
    for (int k = 1; k < mem->ndim; k++) {
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k)) != mem->shape[k])
            return NULL;
        width *= mem->shape[k];
    }
    count = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0));
    if (index != NULL && PyTuple_CheckExact(index) && PyTuple_GET_SIZE(index) == mem->ndim) {
        for (int k = 0; k < mem->ndim; k++) {
            PyObject *part = PyTuple_GET_ITEM(index, k);
            Py_ssize_t offset, stride, axis;
            if (PyTuple_GET_ITEM(part, 2) == Py_None)
                return NULL;
            offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 0));
            stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 1));
            axis = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 2));
            if (axis != k || stride != 1 || (k > 0 && offset != 0))
                return NULL;
            if (k == 0)
                *row = offset;
        }
        *skipped = *row * width;
    }
    else if (index == NULL && view != NULL && Py_TYPE((PyObject *)view) == PlainClass && view->ndim == mem->ndim &&
             view->dtype == mem->dtype && (view->flags & (IN_C_ORDER | ALIGNED)) == (IN_C_ORDER | ALIGNED) && width > 0) {
        *skipped = view->data - mem->data;
        if (*skipped < 0 || *skipped % width != 0)
            return NULL;
        *row = *skipped / width;
    }
    else
        return NULL;
    return *row >= 0 && count >= 0 && *row + count <= mem->shape[0] ? store : NULL;
}

/* As `take_array`, of such rows, for which NumPy's loops are to do the steps. */
static PyObject *
take_rows(Deferred *s, PyObject *x, char letter, int which)
{
    PyObject *store, *head, *shape = AT(x, Shape);
    Py_ssize_t row, skipped;
    if (!is_large(x) || shape == NULL || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > SEEN ||
        (s->shape != NULL && PyObject_RichCompareBool(s->shape, shape, Py_EQ) != 1))
        return NULL;
    head = AT(x, Store) != NULL ? AT(x, Store) : viewed_store(x);
    if (head == NULL || AT(head, Head) != Py_None || AT(head, Exports) != Py_None || AT(head, Remote) != Py_None)
        return NULL;
    /* this deferred sequence may read the same memory already */
    if (!(AT(head, Used) == (PyObject *)s->read && has_run(AT(head, Dirty))) && !make_idle(x))
        return NULL;
    if ((store = rows_of(x, &row, &skipped)) == NULL || store != head || ((Array *)AT(store, Mem))->dtype->type != letter ||
        PyUnicode_GET_LENGTH(AT(store, Char)) != 1)
        return NULL;
    for (int k = 0; k < s->sequence->arrays; k++)
        if (s->stores[k] == store && s->rows[k] == row)
            return NULL;
    if (s->shape == NULL) {
        Py_ssize_t n = 1;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); k++)
            n *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        if (n < SmallLimit || n > PyLong_AsSsize_t(s->sequence->size))
            return NULL;
        s->size = n;
        s->shape = Py_NewRef(shape);
    }
    s->rows[which] = row;
    s->skipped[which] = skipped;
    return store;
}

/* Are these the rows that a deferred sequence reads already? */
static int
is_same_rows(Deferred *s, PyObject *x, int which)
{
    Py_ssize_t row, skipped;
    return is_large(x) && rows_of(x, &row, &skipped) == s->stores[which] && row == s->rows[which] && !is_idle(x) &&
           PyObject_RichCompareBool(AT(x, Shape), s->shape, Py_EQ) == 1;
}

/* Has a large array a part of its memory only, as a slice has? */
static inline int
is_part(PyObject *x)
{
    return is_large(x) && (AT(x, Store) != NULL ? AT(x, Index) != Py_None : viewed_store(x) != NULL);
}

static inline int
is_python_number(PyObject *x)
{
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x);
}

/* Is this a scalar of NumPy's of the dtype with this letter? */
static inline int
scalar_like(PyObject *x, char letter)
{
    return Known[(int)letter].dtype != NULL && Py_TYPE(x) == ((Descr *)Known[(int)letter].dtype)->scalar;
}

/* Can a kernel take this number as it is? */
static int
accepts_number(PyObject *x, char loop, int blocks)
{
    double value = 0;
    if (scalar_like(x, loop))
        return blocks;
    if (loop == 'l' ? !PyLong_CheckExact(x) : !is_python_number(x))
        return 0;
    if (loop == 'l')
        PyLong_AsLongLong(x);
    else
        value = PyFloat_AsDouble(x);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return loop != 'f' || fabs(value) <= FLT_MAX;
}

/* Does an operand do for a step?  What it is, is kept in the deferred sequence. */
static int
take_operand(Deferred *s, PyObject *x, char kind, int which)
{
    OpSequence *c = s->sequence;
    PyObject *store;
    switch (kind) {
    case 'a':
        if (s->stores[which] != NULL && c->blocks && is_part(x))
            return is_same_rows(s, x, which);
        if (s->stores[which] != NULL)
            return s->rows[which] == 0 && is_large(x) && AT(x, Store) == s->stores[which] && AT(x, Index) == Py_None &&
                   Py_SIZE(AT(x, Shape)) == Py_SIZE(s->shape) && !is_idle(x);
        if (c->blocks && is_part(x)) {
            if ((store = take_rows(s, x, c->letters[which], which)) == NULL)
                return 0;
        }
        else {
            if ((store = take_array(s, x, c->letters[which])) == NULL)
                return 0;
            for (int k = 0; k < c->arrays; k++)
                if (s->stores[k] == store)
                    return 0; /* the recording would name it once */
        }
        s->stores[which] = Py_NewRef(store);
        Py_XSETREF(AT(store, Used), Py_NewRef((PyObject *)s->read));
        return 1;
    case 'n':
        if (!accepts_number(x, c->loops[which], c->blocks))
            return 0;
        Py_XSETREF(s->numbers[which], Py_NewRef(x));
        return 1;
    default:
        store = result_of(s, which);
        return store != NULL && is_large(x) && AT(x, Store) == store && AT(x, Index) == Py_None &&
               AT(x, Shape) == s->shape;
    }
}

/* A large array that a deferred sequence is to compute. */
static PyObject *
deferred_array(Deferred *s, PyObject *dtype)
{
    PyObject *store = new_store(s->shape, dtype, s->sequence->blocks ? s->size : PyLong_AsSsize_t(s->sequence->size));
    PyObject *seen = store == NULL ? NULL : PyWeakref_NewRef(store, NULL);
    PyObject *x = seen == NULL ? NULL : new_large(store, s->shape, Py_None, Py_False, Py_None, Py_None);
    if (x == NULL) {
        Py_XDECREF(seen);
        PyErr_Clear(); /* of memory: the slow way says it again */
    }
    else {
        Py_XSETREF(AT(store, Dirty), Py_NewRef((PyObject *)s));
        s->results[s->count++] = seen;
    }
    Py_XDECREF(store);
    return x;
}

/* What a ufunc of one operand or two gives that is the next step of an op sequence, still to be computed; NULL, without
 * an exception, if it is to be recorded. */
static PyObject *
deferred_step(PyObject *ufunc, PyObject *a, PyObject *b)
{
    CallSite *site = ErrorState == NULL ? NULL : site_here();
    OpSequence *c = site == NULL ? NULL : (OpSequence *)site->sequence;
    Operation *step;
    PyObject *operands[2] = {a, b}, *x;
    Deferred *s;
    if (c == NULL || c->strikes >= STRIKES)
        return NULL;
    step = c->operations + site->step;
    if (step->ufunc != ufunc || (step->kinds[1] != 0) != (b != NULL) || !is_in_force(c) || another_records())
        return NULL;
    if (site->step == 0) {
        if (c->until && (c->expired != Expirations || seconds() >= c->until)) {
            c->strikes = STRIKES;
            return NULL;
        }
        if (simulated() || (s = new_deferred(c)) == NULL) {
            PyErr_Clear();
            return NULL;
        }
    }
    else {
        s = LatestDeferred;
        if (s == NULL || s->done || s->sequence != c || s->count != site->step || s->thread != PyThread_get_thread_ident())
            return NULL;
        Py_INCREF(s);
    }
    for (int k = 0; k < 2 && operands[k] != NULL; k++)
        if (!take_operand(s, operands[k], step->kinds[k], step->which[k])) {
            c->strikes += c->blocks; /* NumPy had it done at once else */
            Py_DECREF(s);
            PyErr_Clear();
            return NULL;
        }
    x = s->done ? NULL : deferred_array(s, step->dtype); /* another thread has looked at an operand already */
    if (x != NULL)
        LatestDeferred = s;
    Py_DECREF(s); /* what it is to compute has it */
    return x;
}

/* `deferred_step` of an operator, whose operands are wrapped arrays or numbers. */
static PyObject *
deferred_operator(PyObject *ufunc, PyObject *a, PyObject *b)
{
    if (ufunc == NULL || !is_large(Py_TYPE(a) == Wrapped ? a : b))
        return NULL;
    return deferred_step(ufunc, a, b);
}

/* What a function, or method, makes of all that a deferred sequence is to compute; NULL, without an exception, if that
 * is computed. */
static PyObject *
reduce_deferred(PyObject *x, int fold)
{
    Deferred *s = deferred_of(x);
    OpSequence *c = s == NULL ? NULL : s->sequence;
    if (c == NULL || !c->blocks || s->done || s->count != c->steps || AT(x, Index) != Py_None ||
        result_of(s, c->steps - 1) != AT(x, Store) || !is_in_force(c))
        return NULL;
    if (s->folded) { /* and again */
        c->strikes++;
        return NULL;
    }
    return reduce_blocks(s, fold);
}

static inline int
fold_of(PyObject *key)
{
    PyObject *fold = Folds == NULL ? NULL : PyDict_GetItemWithError(Folds, key);
    return fold == NULL ? UNFOLDED : (int)PyLong_AsLong(fold);
}

/* set_folds(functions): which of these, and methods by name, fold arrays, as numbered in blocked_sequences.h. */
static PyObject *
set_folds(PyObject *module, PyObject *functions)
{
    if (!PyDict_CheckExact(functions)) {
        PyErr_SetString(PyExc_TypeError, "folds() wants a dictionary");
        return NULL;
    }
    Py_XSETREF(Folds, Py_NewRef(functions));
    Py_RETURN_NONE;
}

/* Does a sequence of NumPy's loops begin at this call site that is there to stay?  Once deoptimised it is not made
 * anew. */
static int
has_block_sequence(PyObject *place)
{
    CallSite *site = site_of(PyTuple_GET_ITEM(place, 0), (int)PyLong_AsLong(PyTuple_GET_ITEM(place, 1)));
    OpSequence *c = site == NULL || site->step > 0 ? NULL : (OpSequence *)site->sequence;
    return c != NULL && c->blocks && !c->until;
}

/* learn_sequence(variable, places, operations, letters, loops, shape, size, mask, options, state, run, record[, zero[,
 * seconds]]): as in op_sequences.py; with `run` None NumPy's loops do the steps, for so long if that is not 0.  Whether
 * it is an op sequence now. */
static PyObject *
learn_sequence(PyObject *module, PyObject *args)
{
    PyObject *variable, *places, *operations, *shape, *size, *options, *state, *run, *record;
    const char *letters, *loops;
    int mask;
    double zero = 0.0, time = 0.0;
    OpSequence *c;
    if (!PyArg_ParseTuple(args, "OO!O!ssO!OiOOOO|dd", &variable, &PyTuple_Type, &places, &PyTuple_Type, &operations, &letters,
                          &loops, &PyTuple_Type, &shape, &size, &mask, &options, &state, &run, &record, &zero, &time))
        return NULL;
    if (NewArray == NULL || !PyContextVar_CheckExact(variable) || PyTuple_GET_SIZE(places) > STEPS || PyTuple_GET_SIZE(operations) != PyTuple_GET_SIZE(places) ||
        strlen(letters) > ARRAYS || strlen(loops) > NUMBERS || PyTuple_GET_SIZE(shape) > SEEN)
        Py_RETURN_FALSE;
    if (ErrorState == NULL &&
        (PyType_Ready(&OpSequenceType) < 0 || PyType_Ready(&DeferredType) < 0 || PyType_Ready(&PendingReadType) < 0))
        return NULL;
    Py_XSETREF(ErrorState, Py_NewRef(variable));
    if (run == Py_None && has_block_sequence(PyTuple_GET_ITEM(places, 0)))
        Py_RETURN_FALSE;
    c = PyObject_New(OpSequence, &OpSequenceType);
    if (c == NULL)
        return NULL;
    memset((char *)c + sizeof(PyObject), 0, sizeof(OpSequence) - sizeof(PyObject));
    c->steps = (int)PyTuple_GET_SIZE(places);
    c->arrays = (int)strlen(letters);
    c->numbers = (int)strlen(loops);
    c->mask = mask;
    c->blocks = run == Py_None;
    c->zero = zero;
    c->until = time ? seconds() + time : 0;
    c->expired = Expirations;
    memcpy(c->letters, letters, c->arrays);
    memcpy(c->loops, loops, c->numbers);
    for (int k = 0; k < PyTuple_GET_SIZE(shape); k++)
        c->lengths[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
    c->shape = Py_NewRef(shape);
    c->size = Py_NewRef(size);
    c->options = Py_NewRef(options);
    c->state = Py_NewRef(state);
    c->run = Py_NewRef(run);
    c->record = Py_NewRef(record);
    for (int k = 0; k < c->steps; k++) {
        Operation *one = c->operations + k;
        PyObject *name, *dtype;
        int kinds[2] = {0};
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(operations, k), "UOCi|Ci", &name, &dtype, kinds, one->which, kinds + 1,
                              one->which + 1)) {
            Py_DECREF(c);
            return NULL;
        }
        one->kinds[0] = (char)kinds[0];
        one->kinds[1] = (char)kinds[1];
        one->ufunc = Py_XNewRef(PyDict_GetItemWithError(Loopable, name));
        one->dtype = Py_NewRef(dtype);
        if (one->ufunc == NULL) {
            Py_DECREF(c);
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
        }
    }
    if (c->blocks && !find_steps(c)) {
        Py_DECREF(c);
        Py_RETURN_FALSE;
    }
    for (int k = 0; k < c->steps; k++) {
        PyObject *code;
        int instruction;
        CallSite *site;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, k), "O!i", &PyCode_Type, &code, &instruction)) {
            Py_DECREF(c);
            return NULL;
        }
        site = site_for(code, instruction);
        if (site == NULL)
            break;
        site->step = k;
        Py_XSETREF(site->sequence, Py_NewRef((PyObject *)c));
    }
    Py_DECREF(c);
    Py_RETURN_TRUE;
}

/* expire_sequences(): those for a time are over. */
static PyObject *
expire_sequences(PyObject *module, PyObject *unused)
{
    Expirations++;
    Py_RETURN_NONE;
}

/* run_pending(): have all run that this thread has pending. */
static PyObject *
run_pending(PyObject *module, PyObject *unused)
{
    unsigned long me = PyThread_get_thread_ident();
    for (;;) {
        Deferred *s = AllDeferred;
        int failed;
        while (s != NULL && s->thread != me)
            s = s->after;
        if (s == NULL)
            Py_RETURN_NONE;
        Py_INCREF(s);
        failed = run_or_record(s, 0);
        Py_DECREF(s);
        if (failed)
            return NULL;
    }
}
