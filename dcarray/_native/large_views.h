/* Plain views of large arrays on which nothing is pending. */

enum { SEEN = 8 }; /* axes of windows that are looked at here */

/* The plain view of a window, new, as `view` of window.py; NULL, without an exception, if it is not of the usual kind:
 * for writing, each axis walking along one of the memory's. */
static PyObject *
view_of_window(PyObject *x)
{
    PyObject *index = AT(x, Index), *shape = AT(x, Shape), *store = AT(x, Store), *view;
    Array *mem = (Array *)AT(store, Mem);
    Py_ssize_t sizes[SEEN], strides[SEEN], ndim = PyTuple_GET_SIZE(shape), offset = 0;
    if (NewArray == NULL || index == NULL || !PyTuple_CheckExact(index) || Py_TYPE((PyObject *)mem) != PlainClass ||
        !is_known(mem->dtype) ||
        AT(x, Readonly) != Py_False || (mem->flags & (WRITEABLE | WARNS)) != WRITEABLE || ndim > SEEN ||
        mem->ndim != PyTuple_GET_SIZE(index))
        return NULL;
    for (Py_ssize_t k = 0; k < ndim; k++) {
        sizes[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        strides[k] = PY_SSIZE_T_MIN; /* not yet known */
        if (sizes[k] <= 0)
            return NULL;
    }
    for (Py_ssize_t k = 0; k < mem->ndim; k++) {
        PyObject *part = PyTuple_GET_ITEM(index, k), *axis = PyTuple_GET_ITEM(part, 2);
        offset += PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 0)) * mem->strides[k];
        if (axis != Py_None) {
            Py_ssize_t *stride = strides + PyLong_AsSsize_t(axis);
            if (*stride != PY_SSIZE_T_MIN)
                return NULL; /* a diagonal */
            *stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 1)) * mem->strides[k];
        }
    }
    for (Py_ssize_t k = 0; k < ndim; k++)
        if (strides[k] == PY_SSIZE_T_MIN && sizes[k] > 1)
            return NULL; /* broadcast */
        else if (strides[k] == PY_SSIZE_T_MIN)
            strides[k] = 0;
    view = NewArray(PlainClass, Py_NewRef((PyObject *)mem->dtype), (int)ndim, sizes, strides, mem->data + offset, WRITEABLE,
                    NULL);
    if (view != NULL && SetBase(view, Py_NewRef((PyObject *)mem)) < 0)
        Py_CLEAR(view);
    return view;
}

/* The plain view of a large array on which nothing is pending, or NULL, without an exception; borrowed. */
static PyObject *
view_of(PyObject *x)
{
    PyObject *store, *view, *plain;
    if (!is_idle(x))
        return NULL;
    store = AT(x, Store);
    view = AT(x, View);
    if (view != NULL && Py_TYPE(view) == PlainClass)
        return view;
    if (store == NULL || AT(store, Mem) == Py_None)
        return NULL;
    if ((view = view_of_window(x)) != NULL) {
        Py_XSETREF(AT(x, View), view);
        return view;
    }
    PyErr_Clear();
    plain = PyObject_CallMethod(x, "_plain_view", NULL);
    PyErr_Clear(); /* the slow way says it again */
    Py_XDECREF(plain);
    view = AT(x, View);
    return plain != NULL && view != NULL && Py_TYPE(view) == PlainClass ? view : NULL;
}

/* Do kernels work on the memory of a large array?  Else nothing is recorded, and the report says so. */
static inline int
is_compiled(PyObject *x)
{
    return AT(x, Store) == NULL || PyUnicode_GET_LENGTH(AT(AT(x, Store), Char)) > 0;
}

/* As `view_of`, if views that NumPy makes of it can be wrapped arrays; not where several ranks are simulated. */
static PyObject *
viewable(PyObject *x)
{
    PyObject *view;
    if (!is_large(x) || !is_idle(x) || !is_compiled(x) || !is_one_rank() || (view = view_of(x)) == NULL ||
        !is_known(((Array *)view)->dtype) || !(((Array *)view)->flags & ALIGNED))
        return NULL;
    return view;
}

/* As `viewable`, of an array of which calls that are pending may read, but none writes. */
static PyObject *
readable(PyObject *x)
{
    PyObject *head = is_large(x) ? head_of(x) : NULL, *view = is_large(x) ? AT(x, View) : NULL;
    if (view == NULL || Py_TYPE(view) != PlainClass || head == NULL || is_idle(x))
        return viewable(x);
    return has_run(AT(head, Dirty)) && is_compiled(x) && is_one_rank() && is_known(((Array *)view)->dtype) &&
                   (((Array *)view)->flags & ALIGNED)
               ? view
               : NULL;
}

/* Are there so few elements that NumPy does at once what takes one pass over memory? */
static int
is_one_pass(PyObject *view)
{
    Py_ssize_t below = eager_below();
    if (below < 0)
        PyErr_Clear();
    return elements_of(view) < PASS * below;
}
