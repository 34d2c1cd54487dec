/* The life of a handle.  One is made and dropped with every result, so some are kept to be used again, as Python
 * does with tuples and floats. */

enum { KEPT = 32 };
static PyObject *Kept[KEPT]; /* dead: no references, not tracked, nothing in the slots */
static int Unused;           /* how many there are */

/* A handle with nothing in it, for a small array: that is all it will hold, and NumPy's arrays are not tracked by
 * the garbage collector either. */
static inline PyObject *
new_small(void)
{
    return Unused ? PyObject_Init(Kept[--Unused], Wrapped) : Wrapped->tp_alloc(Wrapped, 0);
}

/* A handle with nothing in it. */
static PyObject *
new_handle(void)
{
    PyObject *x = new_small();
    if (x != NULL && !PyObject_GC_IsTracked(x))
        PyObject_GC_Track(x);
    return x;
}

/* A large array of a class: a window of a store, or, without one, of what `view` is.  NULL with an exception. */
static inline PyObject *
new_large(PyTypeObject *type, PyObject *store, PyObject *shape, PyObject *index, PyObject *readonly, PyObject *view, PyObject *small_view)
{
    PyObject *x = type == Wrapped ? new_handle() : type->tp_alloc(type, 0);
    if (x == NULL)
        return NULL;
    AT(x, Small) = Py_NewRef(Py_None);
    AT(x, Store) = Py_XNewRef(store);
    AT(x, Shape) = Py_NewRef(shape);
    AT(x, Index) = Py_XNewRef(index);
    AT(x, Readonly) = Py_NewRef(readonly);
    AT(x, View) = Py_NewRef(view);
    AT(x, SmallView) = Py_NewRef(small_view);
    return x;
}

/* Does a handle hold a small array, of numbers, and nothing else? */
static inline int
of_numbers(PyObject *x)
{
    PyObject *a = AT(x, Small);
    return a != NULL && Py_TYPE(a) == PlainClass && is_known(((Array *)a)->dtype) && AT(x, Store) == NULL &&
           AT(x, Shape) == NULL && AT(x, Index) == NULL && AT(x, Readonly) == NULL && AT(x, View) == NULL &&
           AT(x, SmallView) == NULL && AT(x, Origin) == NULL;
}

/* As Python's own for classes that are written in it, of which this is one; subclasses come here from theirs. */
static void
drop_handle(PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject_GC_UnTrack(x);
    PyObject_ClearWeakRefs(x);
    if (type == Wrapped && Unused < KEPT && of_numbers(x)) {
        PyObject *a = AT(x, Small);
        AT(x, Small) = NULL;
        Kept[Unused++] = x;
        Py_DECREF(type);
        Py_DECREF(a);
        return;
    }
    Py_TRASHCAN_BEGIN(x, drop_handle)
    for (size_t k = 0; k < sizeof(HandleSlots) / sizeof(HandleSlots[0]); k++)
        Py_CLEAR(AT(x, *HandleSlots[k]));
    if (type == Wrapped && Unused < KEPT)
        Kept[Unused++] = x;
    else
        type->tp_free(x);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

