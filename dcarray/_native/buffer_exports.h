/* The buffer protocol: who reads an array's memory by it, and for how long.
 *
 * NumPy asks for a buffer before anything else when it is to make a plain array of a wrapped one.  Its own arrays describe
 * themselves anew each time, as a text besides; here that is known.  As long as somebody has the memory of a large array,
 * work on it must not wait (`exports` in store.py). */

/* Memory that somebody has: what `view->obj` is. */
typedef struct {
    PyObject_HEAD
    PyObject *array; /* the plain one */
    Py_ssize_t count; /* of those who have it */
    Py_ssize_t shape[SEEN], strides[SEEN];
} Export;

static PyObject *
live_export(PyObject *self, PyObject *args, PyObject *named)
{
    return Py_NewRef(((Export *)self)->count > 0 ? self : Py_None);
}

static void
release_export(PyObject *self, Py_buffer *view)
{
    ((Export *)self)->count--;
}

static void
drop_export(PyObject *self)
{
    Py_DECREF(((Export *)self)->array);
    PyObject_Free(self);
}

static int
fill_buffer(PyObject *self, Py_buffer *view, int flags);

static PyBufferProcs export_buffer = {.bf_getbuffer = fill_buffer, .bf_releasebuffer = release_export};
static PyMemberDef export_members[] = {{"base", T_OBJECT, offsetof(Export, array), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyTypeObject ExportType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dcarray._native.extension.Lent",
                                .tp_basicsize = sizeof(Export),
                                .tp_dealloc = drop_export,
                                .tp_call = live_export,
                                .tp_as_buffer = &export_buffer,
                                .tp_members = export_members,
                                .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};

/* What NumPy says of an element of each dtype in a buffer. */
static const char *
format_of(Descr *dtype)
{
    static char letters[128][2];
    if (dtype->type == 'F' || dtype->type == 'D')
        return dtype->type == 'F' ? "Zf" : "Zd";
    letters[dtype->type & 127][0] = dtype->type;
    return letters[dtype->type & 127];
}

/* Is an array one that is described here: to be written, of whole elements, with more than one along each axis? */
static int
is_describable(Array *a)
{
    if ((a->flags & (WRITEABLE | WARNS | ALIGNED)) != (WRITEABLE | ALIGNED) || !is_known(a->dtype) || a->ndim < 1 ||
        a->ndim > SEEN)
        return 0;
    for (int k = 0; k < a->ndim; k++)
        if (a->shape[k] < 2)
            return 0;
    return 1;
}

/* Is what is asked for what the array can give?  Else NumPy says it in its own words. */
static inline int
satisfies(Array *a, int flags)
{
    if (a->flags & IN_C_ORDER)
        return (flags & PyBUF_F_CONTIGUOUS) != PyBUF_F_CONTIGUOUS || a->ndim == 1;
    return (flags & PyBUF_STRIDES) == PyBUF_STRIDES && (flags & PyBUF_C_CONTIGUOUS) != PyBUF_C_CONTIGUOUS &&
           (flags & PyBUF_F_CONTIGUOUS) != PyBUF_F_CONTIGUOUS && (flags & PyBUF_ANY_CONTIGUOUS) != PyBUF_ANY_CONTIGUOUS;
}

/* Describe the memory. */
static int
fill_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Export *export = (Export *)self;
    Array *a = (Array *)export->array;
    Py_ssize_t width = Known[a->dtype->type & 127].width;
    view->obj = NULL;
    if (!satisfies(a, flags)) {
        PyErr_SetString(PyExc_BufferError, "ndarray is not contiguous");
        return -1;
    }
    view->buf = a->data;
    view->len = elements_of((PyObject *)a) * width;
    view->readonly = 0;
    view->itemsize = width;
    view->format = flags & PyBUF_FORMAT ? (char *)format_of(a->dtype) : NULL;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? export->shape : NULL;
    view->ndim = view->shape == NULL ? 0 : a->ndim;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? export->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->obj = Py_NewRef(self);
    export->count++;
    return 0;
}

static Export *
new_export(PyObject *array)
{
    Array *a = (Array *)array;
    Export *export = PyObject_New(Export, &ExportType);
    if (export == NULL)
        return NULL;
    export->array = Py_NewRef(array);
    export->count = 0;
    memcpy(export->shape, a->shape, a->ndim * sizeof(Py_ssize_t));
    memcpy(export->strides, a->strides, a->ndim * sizeof(Py_ssize_t));
    return export;
}

/* Have it known that somebody has the memory of a large array: 1; it may decline. */
static int
note_export(PyObject *x, Export *export)
{
    PyObject *store = store_of(x), *list, *done;
    int known = 0;
    if (store == NULL)
        return 0;
    store = family_of(store);
    list = AT(store, Exports);
    if (list != NULL && PyList_CheckExact(list)) /* those who have it no more are forgotten */
        for (Py_ssize_t k = PyList_GET_SIZE(list) - 1; k >= 0; k--) {
            PyObject *one = PyList_GET_ITEM(list, k);
            if (!Py_IS_TYPE(one, &ExportType))
                continue;
            known = 1;
            if (((Export *)one)->count == 0 && PyList_SetSlice(list, k, k + 1, NULL) < 0)
                return 0;
        }
    else if (list != NULL && list != Py_None)
        return 0;
    else
        list = NULL;
    if (!known) { /* its owner's memory is a wrapped array's: once is enough */
        if ((done = PyObject_CallMethod(x, "_register", NULL)) == NULL)
            return 0;
        Py_DECREF(done);
        if (AT(store, Exports) != (list == NULL ? Py_None : list))
            return 0;
    }
    if (list != NULL)
        return PyList_Append(list, (PyObject *)export) == 0;
    if ((list = PyList_New(1)) == NULL)
        return 0;
    PyList_SET_ITEM(list, 0, Py_NewRef((PyObject *)export));
    Py_XSETREF(AT(store, Exports), list);
    return 1;
}

/* The buffer of an array of a usual kind on which nothing is pending: 1; else 0, without an exception. */
static int
export_array(PyObject *x, Py_buffer *view, int flags)
{
    PyObject *a = small_array(x);
    Export *export;
    int small = a != NULL, done;
    if (!small) {
        if (!is_large(x) || !is_one_rank() || AT(x, Readonly) != Py_False || !is_compiled(x) || (a = view_of(x)) == NULL)
            return 0;
    }
    if (strchr("qQ", ((Array *)a)->dtype->type) || !is_describable((Array *)a) || !satisfies((Array *)a, flags) ||
        (export = new_export(a)) == NULL)
        return 0;
    done = (small || note_export(x, export)) && fill_buffer((PyObject *)export, view, flags) == 0;
    PyErr_Clear(); /* of memory: the slow way says it again */
    Py_DECREF(export);
    return done;
}
