/* NumPy's functions and methods on the plain arrays of small handles, and of small views of large ones on which nothing is
 * pending: `call_small` of dcarray/api/functions/fallback.py. */

static PyObject *Served; /* a dict: the functions that do so, and what each is behind NumPy's dispatch */

/* What the arguments of a call have been found to be. */
typedef struct {
    int wrapped;    /* there is a wrapped array */
    int windows; /* there is a little window of a large one: what NumPy makes of it must not be a view */
    int inside;  /* there is an array in a sequence */
    int foreign; /* there is a plain array, of which a view stays plain */
    int looks;   /* what NumPy is to have of large arrays */
    int seen;    /* the first argument has been looked at: others may be written */
} Arguments;

/* Of a large array NumPy is to have its plain view if nothing is pending and it has few elements; pending or not; if nothing
 * is pending; or if it is in C's order besides, or has several axes.  GROWN: nothing of large arrays, as NOTHING, and what is made of small ones may be large. */
enum { GROWN = -1, NOTHING, FEW_ELEMENTS, SHAPES, VIEWS, ROWS, MATRICES };

enum { NESTED = 3 }; /* sequences in sequences that are looked into, as those of `block` */

/* Does this hold no array, whatever it is? */
static inline int
is_leaf(PyObject *x)
{
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || x == Py_None || PyBool_Check(x) || PyUnicode_CheckExact(x) ||
           PyType_Check(x) || PySlice_Check(x) || PyComplex_CheckExact(x) || x == Py_Ellipsis;
}

/* A new reference to an argument as NumPy takes it; it may decline. */
static PyObject *
plain_argument(PyObject *x, Arguments *noted, int depth)
{
    PyObject *a, *copy;
    if (Py_TYPE(x) == Wrapped) {
        a = small_array(x);
        if (a == NULL && noted->looks == SHAPES)
            a = is_large(x) && AT(x, View) != NULL && Py_TYPE(AT(x, View)) == PlainClass ? AT(x, View) : NULL;
        else if (a == NULL && noted->looks > NOTHING) {
            a = noted->looks == FEW_ELEMENTS && !noted->seen ? readable(x) : viewable(x);
            if (a != NULL && (noted->looks == ROWS       ? !(((Array *)a)->flags & IN_C_ORDER)
                              : noted->looks == MATRICES ? ((Array *)a)->ndim < 2
                              : noted->looks == FEW_ELEMENTS ? !is_one_pass(a)
                                                         : 0))
                a = NULL;
        }
        else if (a == NULL) {
            a = eager_array(x);
            noted->windows = 1;
        }
        noted->wrapped = 1;
        noted->inside |= depth > 0;
        return Py_XNewRef(a);
    }
    if (Py_TYPE(x) == PlainClass && noted->looks <= NOTHING) {
        noted->foreign = 1;
        return Py_XNewRef(eager_plain(x));
    }
    if (is_leaf(x)) /* texts are orders, by which a view may become a copy */
        return noted->looks >= VIEWS && PyUnicode_CheckExact(x) ? NULL : Py_NewRef(x);
    if (is_numpy_scalar(x))
        return Py_NewRef(x);
    if (depth < NESTED && (PyTuple_CheckExact(x) || PyList_CheckExact(x))) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        copy = PyTuple_CheckExact(x) ? PyTuple_New(n) : PyList_New(n);
        for (Py_ssize_t k = 0; copy != NULL && k < n; k++) {
            a = plain_argument(PySequence_Fast_GET_ITEM(x, k), noted, depth + 1);
            if (a == NULL)
                Py_CLEAR(copy);
            else if (PyTuple_CheckExact(copy))
                PyTuple_SET_ITEM(copy, k, a);
            else
                PyList_SET_ITEM(copy, k, a);
        }
        PyErr_Clear(); /* of memory: the slow way says it again */
        return copy;
    }
    return NULL;
}

/* Is an array aligned, of a dtype that compiles, with steps of whole elements? */
static int
has_whole_strides(PyObject *array)
{
    Array *a = (Array *)array;
    if (!is_known(a->dtype) || !(a->flags & ALIGNED))
        return 0;
    for (int k = 0; k < a->ndim; k++)
        if (a->strides[k] % Known[a->dtype->type & 127].width != 0)
            return 0;
    return 1;
}

/* NumPy's array, with `refs` references known, wrapped; takes over one.  NULL, without an exception, if it is not so
 * simple. */
static PyObject *
wrap_array(PyObject *r, Py_ssize_t refs, PyObject *const *args, PyObject **plains, Py_ssize_t n, Arguments *noted)
{
    PyObject *base = base_of(r), *x;
    int related = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        int several = PyTuple_CheckExact(plains[k]); /* of out=(...) */
        for (Py_ssize_t i = 0; i < (several ? PyTuple_GET_SIZE(plains[k]) : 1); i++)
            if ((several ? PyTuple_GET_ITEM(plains[k], i) : plains[k]) == r) {
                x = several ? PyTuple_GET_ITEM(args[k], i) : args[k];
                Py_DECREF(r);
                return Py_NewRef(x);
            }
    }
    if (noted->foreign && base != NULL) { /* whoever has the memory may write to it */
        Py_DECREF(r);
        return NULL;
    }
    for (Py_ssize_t k = 0; base != NULL && k < n && !related; k++) {
        related = Py_TYPE(plains[k]) == PlainClass && (plains[k] == base || base_of(plains[k]) == base);
        if (related && noted->looks >= VIEWS && is_large(args[k])) {
            x = has_whole_strides(r) ? view_handle(args[k], r) : NULL;
            PyErr_Clear(); /* the slow way says it again */
            Py_DECREF(r);
            return x;
        }
    }
    if (base != NULL && !related && elements_of(r) >= SmallLimit && is_fresh(r))
        return wrap_held_result(r, refs);
    if (base != NULL && !related && noted->looks >= VIEWS && (Py_TYPE(base) != PlainClass || base_of(base) != NULL)) {
        Py_DECREF(r);
        return NULL;
    }
    if (noted->windows && base != NULL && (related || noted->inside)) {
        Py_DECREF(r);
        return NULL;
    }
    if (base != NULL && !related) /* of something new, which may be large */
        related = Py_TYPE(base) == PlainClass && !noted->inside && elements_of(base) < SmallLimit;
    if ((base == NULL || related) && elements_of(r) < SmallLimit &&
        (is_known(((Array *)r)->dtype) || usual_dtype(r)))
        return small_handle(r);
    if (base == NULL && elements_of(r) >= SmallLimit)
        return wrap_held_result(r, refs);
    x = PyObject_CallOneArg(Wrap, r);
    Py_DECREF(r);
    return x;
}

static inline int
is_python_number(PyObject *x)
{
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x);
}

/* Are there no more than Python's numbers in a list? */
static int
holds_numbers(PyObject *list)
{
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); k++)
        if (!is_python_number(PyList_GET_ITEM(list, k)))
            return 0;
    return 1;
}

/* `wrap_array` of any result of NumPy's to which there is one more reference: an array, a tuple or list of arrays, or an
 * object without arrays. */
static PyObject *
wrap_any(PyObject *r, PyObject *const *args, PyObject **plains, Py_ssize_t n, Arguments *noted)
{
    PyObject *items, *whole;
    int given = 0;
    if (Py_TYPE(r) == PlainClass)
        return wrap_array(r, 2, args, plains, n, noted);
    for (Py_ssize_t k = 0; k < n; k++)
        given |= plains[k] == r;
    if (given || (!PyTuple_Check(r) && !PyList_CheckExact(r))) {
        if (!given && !PyList_Check(r) && !PyDict_Check(r) && !PyObject_TypeCheck(r, PlainClass))
            return r;
        Py_DECREF(r);
        return NULL;
    }
    if (PyList_CheckExact(r) && PyList_GET_SIZE(r) > FEW && holds_numbers(r))
        return r;
    items = PyTuple_New(PySequence_Fast_GET_SIZE(r));
    for (Py_ssize_t k = 0; items != NULL && k < PySequence_Fast_GET_SIZE(r); k++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(r, k));
        if (Py_TYPE(item) == PlainClass)
            item = wrap_array(item, 2, args, plains, n, noted);
        else if (PyTuple_Check(item) || PyList_Check(item) || PyDict_Check(item) || PyObject_TypeCheck(item, PlainClass))
            Py_CLEAR(item);
        set_or_clear(&items, k, item);
    }
    if (items == NULL || PyTuple_CheckExact(r))
        whole = items;
    else if (PyList_CheckExact(r)) {
        whole = PySequence_List(items);
        Py_DECREF(items);
    }
    else { /* named fields */
        whole = PyObject_CallObject((PyObject *)Py_TYPE(r), items);
        Py_DECREF(items);
    }
    Py_DECREF(r);
    return whole;
}

/* The most elements that NumPy makes of some arguments if it takes each element of one array with each of another,
 * and as often as all numbers say, or makes a square of so many rows if there is no array (`arrays` < 0); more than
 * there can be if that may not be all. */
static double
most_made(PyObject **plains, Py_ssize_t n, Py_ssize_t arrays)
{
    double most = 1;
    int square = arrays < 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        int sequence = PyTuple_CheckExact(plains[k]) || PyList_CheckExact(plains[k]);
        PyObject **items = sequence ? PySequence_Fast_ITEMS(plains[k]) : plains + k;
        Py_ssize_t several = sequence ? PySequence_Fast_GET_SIZE(plains[k]) : 1;
        most *= several > 1 ? (double)several : 1;
        for (Py_ssize_t i = 0; i < several; i++)
            if (PyLong_CheckExact(items[i])) {
                double count = PyLong_AsDouble(items[i]);
                PyErr_Clear(); /* of a number that is too large: NumPy says it */
                most *= fabs(count) > 1 ? fabs(count) : 1;
            }
            else if (Py_TYPE(items[i]) == PlainClass && !sequence && arrays-- > 0)
                most *= (double)elements_of(items[i]);
            else if (items[i] != Py_None && !PyType_Check(items[i]) && !PyUnicode_CheckExact(items[i]))
                return (double)PY_SSIZE_T_MAX;
    }
    return square ? most * most : most;
}

/* Is it to be recorded what a call makes of small arrays, since that is large? */
static int
makes_large(PyObject **plains, Py_ssize_t n, Py_ssize_t arrays)
{
    return most_made(plains, n, arrays) >= (double)SmallLimit;
}

static PyObject *WrapRest; /* a function: `wrap_results_of` of dcarray/api/functions/fallback.py */

/* What NumPy has made of some arguments, which are these plain ones, wrapped. */
static PyObject *
wrap_made(PyObject *result, PyObject *const *args, PyObject **plains, Py_ssize_t n, Arguments *noted)
{
    PyObject *r = wrap_any(Py_NewRef(result), args, plains, n, noted), *given = NULL, *few = NULL;
    if (r != NULL || PyErr_Occurred() || noted->looks > NOTHING)
        return r;
    given = PyTuple_New(n), few = PyTuple_New(n);
    for (Py_ssize_t k = 0; given != NULL && few != NULL && k < n; k++) {
        PyTuple_SET_ITEM(given, k, Py_NewRef(args[k]));
        PyTuple_SET_ITEM(few, k, Py_NewRef(plains[k]));
    }
    if (given != NULL && few != NULL)
        r = PyObject_CallFunctionObjArgs(WrapRest, result, given, few, NULL);
    Py_XDECREF(given);
    Py_XDECREF(few);
    return r;
}

static PyObject *Dot, *DotMethod; /* what `dot` is behind NumPy's dispatch, and the method */

/* Is what a function makes of two arguments so large that it is better recorded? */
static int
product_is_large(PyObject *function, PyObject **plains)
{
    int dot = (function == Dot || function == DotMethod) && Py_TYPE(plains[0]) == PlainClass && Py_TYPE(plains[1]) == PlainClass &&
              ((Array *)plains[0])->ndim < 3 && ((Array *)plains[1])->ndim < 3;
    return is_worth_recording(plains[0], plains[1], dot);
}

/* The call in NumPy, its result wrapped; it may decline, and then nothing has changed, nor has much been done.
 * `function` is a tuple, with `arrays` as `most_made` wants it, if what it makes may be large.  `like`: there is an
 * wrapped array that is not among the arguments. */
static PyObject *
call_plain(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names, int looks, int like)
{
    PyObject *few[FEW], **plains = few, *r = NULL;
    Py_ssize_t arrays = 0;
    if (PyTuple_CheckExact(function)) {
        looks = looks == NOTHING ? GROWN : looks;
        arrays = PyLong_AsSsize_t(PyTuple_GET_ITEM(function, 1));
        function = PyTuple_GET_ITEM(function, 0);
    }
    Arguments noted = {.wrapped = like && arrays < 0, .looks = looks};
    Py_ssize_t n = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), done = 0;
    if (n > FEW && (plains = PyMem_New(PyObject *, n)) == NULL)
        return NULL;
    while (done < n && (plains[done] = plain_argument(args[done], &noted, 0)) != NULL)
        noted.seen = (int)++done;
    /* dcarray's own functions wrap what they make of plain arrays, too */
    if (done == n && (noted.wrapped || (!like && names == NULL && arrays == 0 && !made_on_device())) &&
        !(looks == GROWN ? makes_large(plains, n, arrays) : n == 2 && names == NULL && product_is_large(function, plains))) {
        PyObject *result = PyObject_Vectorcall(function, plains, nargs, names);
        if (result != NULL) {
            r = wrap_made(result, args, plains, n, &noted);
            Py_DECREF(result);
        }
        else if (PyErr_ExceptionMatches(PyExc_TypeError)) /* of an argument that only dcarray knows, perhaps */
            PyErr_Clear();
    }
    while (done > 0)
        Py_DECREF(plains[--done]);
    if (plains != few)
        PyMem_Free(plains);
    return r;
}

/* ---- functions --------------------------------------------------------------------------------- */
static PyObject *Function; /* the method __array_function__ */
static PyObject *ShapeReaders; /* a set: the served functions that look at shapes and dtypes alone */
static PyObject *ViewMakers; /* a dict: those that give views, and methods' names; True: only in C's order; None: of matrices; Ellipsis:
                              * those that give none, and take one pass */

/* What a served function wants of large arrays. */
static int
access_of(PyObject *function)
{
    PyObject *rows = PyDict_GetItemWithError(ViewMakers, function);
    if (rows != NULL)
        return rows == Py_True ? ROWS : rows == Py_None ? MATRICES : rows == Py_Ellipsis ? FEW_ELEMENTS : VIEWS;
    return PySet_Contains(ShapeReaders, function) == 1 ? SHAPES : NOTHING;
}

/* The call on the plain arrays of small ones, and on what it wants of large ones, which is tried first if the first
 * argument is one; as `call_plain`. */
static PyObject *
call_on_views(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject *key)
{
    int first = nargs > 0 && is_large(args[0]), looks = first ? access_of(key) : NOTHING;
    PyObject *r = call_plain(function, args, nargs, names, looks, 1);
    if (r != NULL || PyErr_Occurred())
        return r;
    if (first)
        return looks == NOTHING ? NULL : call_plain(function, args, nargs, names, NOTHING, 1);
    looks = access_of(key);
    return looks == NOTHING ? NULL : call_plain(function, args, nargs, names, looks, 1);
}

/* __array_function__(function, types, args, kwargs) */
static PyObject *
array_function(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *r = NULL, *all[FEW], *function;
    if (nargs == 4 && PyTuple_CheckExact(args[2]) && PyDict_CheckExact(args[3]) && PyDict_GET_SIZE(args[3]) == 0) {
        r = answer_function(args[0], PySequence_Fast_ITEMS(args[2]), PyTuple_GET_SIZE(args[2]));
        if (r != NULL || PyErr_Occurred())
            return r;
    }
    if (nargs == 4 && Served != NULL && PyTuple_CheckExact(args[2]) && PyDict_CheckExact(args[3]) &&
        (function = PyDict_GetItemWithError(Served, args[0])) != NULL) {
        Py_ssize_t n = PyTuple_GET_SIZE(args[2]), named = PyDict_GET_SIZE(args[3]), at = 0, k = n;
        if (named == 0)
            r = call_on_views(function, PySequence_Fast_ITEMS(args[2]), n, NULL, args[0]);
        else if (n + named <= FEW) {
            PyObject *names = PyTuple_New(named), *key, *value;
            memcpy(all, PySequence_Fast_ITEMS(args[2]), n * sizeof(PyObject *));
            while (names != NULL && PyDict_Next(args[3], &at, &key, &value)) {
                PyTuple_SET_ITEM(names, k - n, Py_NewRef(key));
                all[k++] = value;
            }
            if (names != NULL)
                r = call_on_views(function, all, n, names, args[0]);
            Py_XDECREF(names);
        }
    }
    if (r != NULL || PyErr_Occurred() || nargs >= FEW)
        return r;
    all[0] = self;
    memcpy(all + 1, args, nargs * sizeof(PyObject *));
    return PyObject_Vectorcall(Function, all, nargs + 1, NULL);
}

static PyMethodDef function_def = {"__array_function__", (PyCFunction)(void (*)(void))array_function,
                                   METH_FASTCALL, "NumPy's protocol for functions."};
