/* Basic and advanced indexing, and assignments to parts. */

#define MOST_AXES 8 /* of arrays whose parts are looked at beforehand */

/* ---- windows ----------------------------------------------------------------------------------- */
/* The indices of a key, a tuple or a single one; `n` is their number. */
static inline PyObject **
indices_of(PyObject **key, Py_ssize_t *n)
{
    int several = PyTuple_CheckExact(*key);
    *n = several ? PyTuple_GET_SIZE(*key) : 1;
    return several ? PySequence_Fast_ITEMS(*key) : key;
}

/* A part of `x`, a large array; NULL without an exception if the key or its result is not of the usual kind:
 * many elements selected by slices. */
static PyObject *
slice_of_large(PyObject *x, PyObject *key)
{
    PyObject *whole_shape, *whole_index, *shape, *index, *y = NULL;
    Py_ssize_t given, elements;
    PyObject **slices = indices_of(&key, &given);
    if ((Py_TYPE(x) != Wrapped && !is_device_class(Py_TYPE(x))) || AT(x, Small) != Py_None || AT(x, Index) == NULL || given == 0)
        return NULL;
    whole_shape = Py_NewRef(AT(x, Shape)); /* the slices may hold objects that run any code */
    whole_index = Py_NewRef(AT(x, Index));
    elements = select_part(whole_shape, whole_index, slices, given, &shape, &index);
    Py_DECREF(whole_shape);
    Py_DECREF(whole_index);
    if (elements <= 0) {
        PyErr_Clear(); /* NumPy says it in its own words */
        return NULL;
    }
    /* else NumPy may be to work on it */
    if (elements >= SmallLimit || (AT(x, View) == Py_None && AT(AT(x, Store), Mem) == Py_None))
        y = store_of(x) == NULL ? NULL : new_large(Py_TYPE(x), AT(x, Store), shape, index, AT(x, Readonly), Py_None, Py_None);
    PyErr_Clear();
    Py_DECREF(shape);
    Py_DECREF(index);
    return y;
}

/* Is this basic indexing, as far as the types tell? */
static int
is_basic_key(PyObject *key)
{
    Py_ssize_t n;
    PyObject **keys = indices_of(&key, &n);
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *one = keys[k];
        if (!PyLong_CheckExact(one) && !PySlice_Check(one) && one != Py_None && one != Py_Ellipsis)
            return 0;
    }
    return 1;
}

/* Is a view so small that NumPy is to work on it?  -1 with an exception. */
static int
is_small_view(PyObject *view)
{
    Py_ssize_t below = eager_below();
    return below < 0 ? -1 : elements_of(view) < below;
}

/* The array of which `view` is the plain view: NumPy made it of that of `x`, a large array on which nothing is
 * pending.  Where in the memory it is, is found when somebody asks. */
static PyObject *
view_handle(PyObject *x, PyObject *view)
{
    PyObject *shape, *y = NULL, *store = viewed_store(x);
    int small = is_small_view(view), flags = ((Array *)view)->flags;
    if (small < 0 || (store == NULL && (store = store_of(x)) == NULL))
        return NULL;
    if ((shape = shape_of(view)) != NULL)
        y = new_large(Wrapped, NULL, shape, NULL, (flags & WRITEABLE) && !(flags & WARNS) ? Py_False : Py_True, view,
                      small ? view : Py_None);
    if (y != NULL)
        AT(y, Origin) = Py_NewRef(store);
    Py_XDECREF(shape);
    return y;
}

/* The part of `x`, a large array with a view of its memory, of which `view` is the view; as in handle.py. */
static PyObject *
part_handle(PyObject *x, PyObject *key, PyObject *view)
{
    PyObject *shape, *origin, *index, *y = NULL;
    int small = is_small_view(view);
    if (small < 0 || store_of(x) == NULL || (index = get_index(x, NULL)) == NULL)
        return NULL;
    shape = shape_of(view);
    origin = PyTuple_Pack(3, AT(x, Shape), index, key);
    Py_DECREF(index);
    if (shape != NULL && origin != NULL)
        y = new_large(Wrapped, AT(x, Store), shape, NULL, AT(x, Readonly), view, small ? view : Py_None);
    if (y == NULL)
        Py_XDECREF(origin);
    else
        AT(y, Origin) = origin;
    Py_XDECREF(shape);
    return y;
}

/* May NumPy look at the memory of `x`, a large array, by this key? */
static inline int
has_view(PyObject *x, PyObject *key)
{
    if (Py_TYPE(x) != Wrapped || AT(x, Small) != Py_None || AT(x, View) == NULL)
        return 0;
    return Py_TYPE(AT(x, View)) == PlainClass && is_basic_key(key);
}

/* Does a key, of integers for all axes, select an element? */
static inline int
is_element(Array *view, PyObject *key)
{
    Py_ssize_t given;
    PyObject **keys = indices_of(&key, &given);
    for (Py_ssize_t k = 0; k < given; k++)
        if (!PyLong_CheckExact(keys[k]))
            return 0;
    return given == view->ndim;
}

/* Does a key of integers and slices select few elements of a large array with this view?  No exception is left. */
static int
few_selected(Array *view, PyObject *key)
{
    Py_ssize_t given, n = 1, shape[MOST_AXES];
    PyObject **keys = indices_of(&key, &given);
    int ndim = view->ndim;
    if (given > ndim || ndim > MOST_AXES)
        return 0;
    memcpy(shape, view->shape, ndim * sizeof(Py_ssize_t)); /* slices may hold objects that run any code */
    for (int k = 0; k < ndim; k++) {
        Py_ssize_t start, stop, step;
        if (k >= given)
            n *= shape[k];
        else if (PySlice_Check(keys[k])) {
            if (PySlice_Unpack(keys[k], &start, &stop, &step) < 0) {
                PyErr_Clear(); /* NumPy says it in its own words */
                return 0;
            }
            n *= PySlice_AdjustIndices(shape[k], &start, &stop, step);
        }
        else if (!PyLong_CheckExact(keys[k]))
            return 0;
    }
    return n < SmallLimit;
}

/* ---- indexing ---------------------------------------------------------------------------------- */
/* Is there a wrapped array among the indices? */
static int
mentions_wrapped(PyObject *key)
{
    Py_ssize_t n;
    PyObject **keys = indices_of(&key, &n);
    for (Py_ssize_t k = 0; k < n; k++)
        if (PyObject_TypeCheck(keys[k], Wrapped))
            return 1;
    return 0;
}

/* An index as NumPy takes it, or NULL; borrowed.  Of a small array NumPy takes elements in any case: `of_small`. */
static inline PyObject *
numpy_index(PyObject *index, int of_small)
{
    PyObject *a = eager_array(index);
    return a == NULL && of_small && is_large(index) ? view_of(index) : a;
}

/* The key as NumPy takes it, a new reference; it may decline. */
static PyObject *
numpy_key(PyObject *key, int of_small)
{
    PyObject *plain;
    if (!mentions_wrapped(key))
        return Py_NewRef(key);
    if (!PyTuple_CheckExact(key))
        return Py_XNewRef(numpy_index(key, of_small));
    plain = PyTuple_New(PyTuple_GET_SIZE(key));
    for (Py_ssize_t k = 0; plain != NULL && k < PyTuple_GET_SIZE(key); k++) {
        PyObject *one = PyTuple_GET_ITEM(key, k);
        if (PyObject_TypeCheck(one, Wrapped))
            one = numpy_index(one, of_small);
        set_or_clear(&plain, k, Py_XNewRef(one));
    }
    PyErr_Clear(); /* of memory: the slow way says it again */
    return plain;
}

/* How many integers there are in an index, an array or a list; -1 if it is no such thing. */
static Py_ssize_t
integers_in(PyObject *key)
{
    if (PyList_CheckExact(key)) {
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(key); k++)
            if (!PyLong_CheckExact(PyList_GET_ITEM(key, k)))
                return -1;
        return PyList_GET_SIZE(key);
    }
    if (Py_TYPE(key) != PlainClass)
        key = eager_array(key);
    if (key == NULL || strchr("iu", ((Array *)key)->dtype->kind) == NULL || ((Array *)key)->ndim == 0)
        return -1;
    return elements_of(key);
}

/* Has such an index one axis? */
static inline int
is_vector(PyObject *key)
{
    PyObject *a = Py_TYPE(key) == Wrapped ? eager_array(key) : key;
    return PyList_CheckExact(key) || (a != NULL && Py_TYPE(a) == PlainClass && ((Array *)a)->ndim == 1);
}

/* The most elements that a key of integers, slices and arrays of integers selects, or -1 for any other. */
static Py_ssize_t
most_selected(Array *a, PyObject *key)
{
    Py_ssize_t n, most = 1, arrays = 0, together = 1; /* vectors of integers are taken element by element */
    PyObject **keys = indices_of(&key, &n);
    if (n > a->ndim)
        return -1;
    for (Py_ssize_t k = 0; k < a->ndim; k++) {
        Py_ssize_t start, stop, step;
        if (k < n && PyLong_CheckExact(keys[k]))
            continue;
        if (k >= n)
            most *= a->shape[k];
        else if (PySlice_Check(keys[k])) {
            if (PySlice_Unpack(keys[k], &start, &stop, &step) < 0)
                return -1;
            most *= PySlice_AdjustIndices(a->shape[k], &start, &stop, step);
        }
        else {
            Py_ssize_t integers = integers_in(keys[k]);
            if (integers < 0)
                return -1;
            arrays++;
            if (!is_vector(keys[k]))
                most *= integers;
            else if (together < integers)
                together = integers;
        }
        if (most >= SmallLimit || together >= SmallLimit)
            return -1;
    }
    most *= together;
    return arrays && most < SmallLimit ? most : -1;
}

/* The key for NumPy (a new reference) if that is to select elements of a large array at once, because they are
 * few; `whole` is the view of it then.  NULL, without an exception, if not. */
static PyObject *
gather_key(PyObject *x, PyObject *key, PyObject **whole)
{
    PyObject *view = is_large(x) && !is_basic_key(key) ? view_of(x) : NULL;
    Py_ssize_t most = -1, below = 0;
    if (view != NULL && (most = most_selected((Array *)view, key)) >= 0)
        below = eager_below();
    PyErr_Clear();
    *whole = view;
    return most >= 0 && most < below ? numpy_key(key, 0) : NULL;
}

static PyObject *Getitem; /* the method __getitem__ */

static PyObject *
slow_subscript(PyObject *x, PyObject *key)
{
    PyObject *both[2] = {x, key};
    return PyObject_Vectorcall(Getitem, both, 2, NULL);
}

static PyObject *
fast_subscript(PyObject *x, PyObject *key)
{
    PyObject *a = small_array(x), *r, *given;
    int seen = a == NULL && has_view(x, key);
    if (a == NULL && !(seen && few_selected((Array *)AT(x, View), key)) &&
        (r = slice_of_large(x, key)) != NULL)
        return r;
    if (seen && has_view(x, key)) { /* slices may hold objects that run any code */
        PyObject *view = PyObject_GetItem(AT(x, View), key);
        if (view == NULL)
            return NULL;
        if (Py_TYPE(view) != PlainClass && is_idle(x))
            return view; /* an element */
        if (Py_TYPE(view) != PlainClass)
            r = slow_subscript(x, key);
        else /* with no window to begin with, it is found sooner from where the view is */
            r = AT(x, Index) == NULL && is_idle(x) && is_compiled(x) ? view_handle(x, view) : part_handle(x, key, view);
        Py_DECREF(view);
        return r;
    }
    if (small_array(x) != NULL)
        given = numpy_key(key, 1);
    else
        given = gather_key(x, key, &a);
    if (given == NULL)
        return slow_subscript(x, key);
    r = PyObject_GetItem(a, given);
    Py_DECREF(given);
    if (r != NULL)
        return Py_TYPE(r) == PlainClass ? wrap_result(r) : r;
    if (!PyErr_ExceptionMatches(PyExc_IndexError))
        return NULL;
    PyErr_Clear();
    return slow_subscript(x, key);
}

/* Python's interpreter would call a method written in Python without a look at the slot. */
static PyMethodDef getitem_def = {"__getitem__", fast_subscript, METH_O, "See `numpy.ndarray.__getitem__`."};

/* Is this to copy a plain array?  To record that takes a copy of it, too. */
static int
is_plain_copy(PyObject *view, PyObject *value)
{
    int now = Py_TYPE(value) == PlainClass && elements_of(view) == elements_of(value) && eager_below() > 0;
    PyErr_Clear();
    return now;
}

static objobjargproc slow_assign;
static int
fast_assign(PyObject *x, PyObject *key, PyObject *value)
{
    PyObject *a = small_array(x), *b, *part, *given;
    int failed;
    if (value == NULL)
        return slow_assign(x, key, value);
    b = PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || Py_TYPE(value) == PlainClass ? value : numpy_operand(value);
    if (a == NULL && b != NULL && has_view(x, key) && is_idle(x) && AT(x, Readonly) == Py_False) {
        PyObject *whole = AT(x, View), *view;
        int done;
        if (!is_compiled(x)) /* nothing is ever recorded on it */
            return b == value ? PyObject_SetItem(whole, key, b) : slow_assign(x, key, value);
        if (is_element((Array *)whole, key))
            return PyObject_SetItem(whole, key, b);
        view = PyObject_GetItem(whole, key);
        if (view != NULL && Py_TYPE(view) != PlainClass) /* an element */
            done = PyObject_SetItem(whole, key, b) < 0 ? -1 : 1;
        else {
            done = view == NULL ? -1 : is_small_view(view);
            if (done == 0 && is_plain_copy(view, value))
                done = 1;
            if (done > 0)
                done = PyObject_SetItem(view, Py_Ellipsis, b) < 0 ? -1 : 1;
        }
        Py_XDECREF(view);
        if (done)
            return done < 0 ? -1 : 0;
    }
    if (Py_TYPE(value) == Wrapped && (part = slice_of_large(x, key)) != NULL) {
        int done = record_assignment(part, value);
        Py_DECREF(part);
        if (done || PyErr_Occurred())
            return done ? 0 : -1;
    }
    given = NULL;
    if (b != NULL)
        given = a != NULL ? numpy_key(key, 1) : AT(x, Readonly) != Py_False ? NULL : gather_key(x, key, &a);
    if (given == NULL)
        return slow_assign(x, key, value);
    failed = PyObject_SetItem(a, given, b);
    Py_DECREF(given);
    if (!failed)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_IndexError))
        return -1;
    PyErr_Clear();
    return slow_assign(x, key, value);
}

/* ---- arrays on devices ------------------------------------------------------------------------- */
static PyObject *DeviceGetitem; /* the method in Python; NULL as long as there are none */

static PyObject *
device_subscript(PyObject *x, PyObject *key)
{
    PyObject *r = slice_of_large(x, key);
    return r != NULL ? r : PyObject_CallFunctionObjArgs(DeviceGetitem, x, key, NULL);
}

static PyMethodDef device_getitem_def = {"__getitem__", device_subscript, METH_O, "See `numpy.ndarray.__getitem__`."};

static int
device_assign(PyObject *x, PyObject *key, PyObject *value)
{
    PyObject *part = value != NULL && Py_TYPE(value) == Py_TYPE(x) ? slice_of_large(x, key) : NULL;
    int done = part == NULL ? 0 : record_assignment(part, value);
    Py_XDECREF(part);
    if (PyErr_Occurred())
        return -1;
    return done ? 0 : slow_assign(x, key, value);
}
