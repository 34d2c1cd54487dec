/* The iterator over the elements of an array with one axis (`Attributes._elements`). */

typedef struct {
    PyObject_HEAD
    PyObject *array, *seen; /* the latter is plain, or NULL */
    Py_ssize_t at;
} Elements;

static PyTypeObject ElementsType;
static getiterfunc slow_iter;

/* Does it lie in blocks over several ranks? */
static int
in_blocks(PyObject *head)
{
    return head != NULL && AT(head, Remote) != NULL && AT(head, Remote) != Py_None;
}

static PyObject *
next_element(Elements *e)
{
    PyObject *a = e->array == NULL ? NULL : small_array(e->array), *head, *r;
    if (e->array == NULL)
        return NULL;
    head = a == NULL ? head_of(e->array) : NULL;
    if (a != NULL)
        Py_XSETREF(e->seen, Py_NewRef(a));
    else if (e->seen == NULL || (head != NULL && !has_run(AT(head, Dirty))) || in_blocks(head)) {
        a = PyObject_CallMethod(e->array, "_read_only_elements", NULL);
        if (a == NULL)
            return NULL;
        Py_XSETREF(e->seen, a);
    }
    a = Py_NewRef(e->seen); /* to read may run other code */
    if (Py_TYPE(a) == PlainClass && ((Array *)a)->ndim == 1 && e->at < ((Array *)a)->shape[0])
        r = PySequence_GetItem(a, e->at++);
    else {
        Py_CLEAR(e->array);
        r = NULL;
    }
    Py_DECREF(a);
    return r;
}

static PyObject *
fast_iter(PyObject *x)
{
    PyObject *a = small_array(x);
    Elements *e;
    if (a != NULL ? ((Array *)a)->ndim != 1 : !is_large(x) || PyTuple_GET_SIZE(AT(x, Shape)) != 1 || in_blocks(head_of(x)))
        return slow_iter(x);
    e = PyObject_GC_New(Elements, &ElementsType);
    if (e == NULL)
        return NULL;
    e->array = Py_NewRef(x);
    e->seen = NULL;
    e->at = 0;
    PyObject_GC_Track(e);
    return (PyObject *)e;
}

static int
elements_visit(Elements *e, visitproc visit, void *arg)
{
    Py_VISIT(e->array);
    Py_VISIT(e->seen);
    return 0;
}

static int
elements_clear(Elements *e)
{
    Py_CLEAR(e->array);
    Py_CLEAR(e->seen);
    return 0;
}

static void
elements_drop(Elements *e)
{
    PyObject_GC_UnTrack(e);
    elements_clear(e);
    PyObject_GC_Del(e);
}

static PyTypeObject ElementsType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Elements",
                                    .tp_basicsize = sizeof(Elements),
                                    .tp_dealloc = (destructor)elements_drop,
                                    .tp_traverse = (traverseproc)elements_visit,
                                    .tp_clear = (inquiry)elements_clear,
                                    .tp_iter = PyObject_SelfIter,
                                    .tp_iternext = (iternextfunc)next_element,
                                    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                                Py_TPFLAGS_DISALLOW_INSTANTIATION};
