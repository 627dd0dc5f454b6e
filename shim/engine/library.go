//go:build cgo

package engine

/*
#cgo LDFLAGS: -ldl
#cgo noescape ll_call
#cgo nocallback ll_call

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	int32_t (*create)(const void*, size_t, void**, char**);
	int32_t (*call)(void*, const char*, const void*, size_t, int64_t, void**, size_t*, char**);
	void (*free)(void*);
	void (*destroy)(void*);
	const char* (*version)(void);
	const void* (*details)(const char*, size_t*);
} ll_library;

// ll_open loads the library and looks its functions up. Returns NULL and sets *error to a text to free.
static ll_library* ll_open(const char* path, char** error) {
	const char* names[] = {"loadline_create", "loadline_call", "loadline_free", "loadline_destroy", "loadline_version",
	                       "loadline_error_details"};
	void* found[6];
	void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		*error = strdup(dlerror());
		return NULL;
	}
	for (int i = 0; i < 6; i++) {
		found[i] = dlsym(handle, names[i]);
		if (found[i] == NULL) {
			*error = strdup(dlerror());
			dlclose(handle);
			return NULL;
		}
	}
	ll_library* library = malloc(sizeof *library);
	*(void**)&library->create = found[0];
	*(void**)&library->call = found[1];
	*(void**)&library->free = found[2];
	*(void**)&library->destroy = found[3];
	*(void**)&library->version = found[4];
	*(void**)&library->details = found[5];
	return library;
}

static int32_t ll_create(ll_library* l, const void* config, size_t config_size, void** engine, char** error) {
	return l->create(config, config_size, engine, error);
}
static int32_t ll_call(ll_library* l, void* engine, const char* method, const void* request, size_t request_size,
                       int64_t timeout_ns, void** response, size_t* response_size, char** error) {
	return l->call(engine, method, request, request_size, timeout_ns, response, response_size, error);
}
static void ll_free(ll_library* l, void* memory) { l->free(memory); }
static void ll_destroy(ll_library* l, void* engine) { l->destroy(engine); }
static const void* ll_details(ll_library* l, const char* error, size_t* size) { return l->details(error, size); }
static const char* ll_version(ll_library* l) { return l->version(); }
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// library is a loaded libloadline.so. It stays loaded: engines may have had threads of their own.
type library struct {
	functions *C.ll_library
	version   string
}

var (
	librariesMu sync.Mutex
	libraries   = map[string]*library{} // by path
)

func loadLibrary(path string) (*library, error) {
	librariesMu.Lock()
	defer librariesMu.Unlock()
	if l, ok := libraries[path]; ok {
		return l, nil
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var problem *C.char
	functions := C.ll_open(name, &problem)
	if functions == nil {
		defer C.free(unsafe.Pointer(problem))
		return nil, fmt.Errorf("engine library: %s", C.GoString(problem))
	}
	l := &library{functions: functions, version: C.GoString(C.ll_version(functions))}
	libraries[path] = l
	return l, nil
}

// create returns a new engine; config is a serialized EngineConfig, empty: the default.
func (l *library) create(config []byte) (unsafe.Pointer, error) {
	var engine unsafe.Pointer
	var problem *C.char
	if code := C.ll_create(l.functions, unsafe.Pointer(unsafe.SliceData(config)), C.size_t(len(config)), &engine,
		&problem); code != 0 {
		return nil, l.status(code, problem)
	}
	return engine, nil
}

func (l *library) destroy(engine unsafe.Pointer) {
	C.ll_destroy(l.functions, engine)
}

// call makes one call and hands the response to use, which must not keep it. `method` ends in NUL.
func (l *library) call(engine unsafe.Pointer, method, request []byte, timeoutNs int64, use func([]byte) error) error {
	var response unsafe.Pointer
	var size C.size_t
	var problem *C.char
	code := C.ll_call(l.functions, engine, (*C.char)(unsafe.Pointer(unsafe.SliceData(method))),
		unsafe.Pointer(unsafe.SliceData(request)), C.size_t(len(request)), C.int64_t(timeoutNs), &response,
		&size, &problem)
	if code != 0 {
		return l.status(code, problem)
	}
	if response != nil {
		defer C.ll_free(l.functions, response)
	}
	return use(unsafe.Slice((*byte)(response), int(size)))
}

// status makes an error of a code, its text and its details, and frees them.
func (l *library) status(code C.int32_t, problem *C.char) error {
	defer C.ll_free(l.functions, unsafe.Pointer(problem))
	var size C.size_t
	details := C.ll_details(l.functions, problem, &size)
	var message spb.Status
	if proto.Unmarshal(unsafe.Slice((*byte)(details), int(size)), &message) != nil ||
		codes.Code(message.GetCode()) != codes.Code(code) {
		return status.Error(codes.Code(code), C.GoString(problem))
	}
	return status.FromProto(&message).Err()
}
