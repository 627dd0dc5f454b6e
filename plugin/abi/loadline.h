/* The engine behind a C ABI: serialized messages in, serialized messages out. Compiles as C11 and as C++.
 *
 * Methods are those of proto/loadline/v1, by their full gRPC names, such as
 * "/loadline.v1.SchedulerExtender/Score"; requests and responses are the serialized messages of that method.
 * All functions may be called from any thread; none throws, and none ends the process on bad bytes. What a
 * question may take is bounded (EngineConfig.max_question_bytes). Where the process has no memory left all
 * the same, it ends with a text on stderr. loadline_create() sets a std::new_handler for this, which is that
 * of the whole process: C++ code of the host that runs out of memory ends it as well. A host that wants
 * another handler sets it before; a call of this library that runs out of memory still ends the process. The
 * library cannot be unloaded once an engine was created. */
#ifndef LOADLINE_PLUGIN_ABI_LOADLINE_H_
#define LOADLINE_PLUGIN_ABI_LOADLINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An engine: all views of its clients. Opaque. */
typedef struct loadline_engine loadline_engine;

/* Creates an engine. `config` is a serialized loadline.v1.EngineConfig of `config_size` bytes; NULL and 0
 * take the defaults. Returns 0 and sets *engine, which the caller gives back with loadline_destroy(); or
 * returns an absl::StatusCode (3, invalid argument), sets *engine to NULL and *error to a NUL-terminated
 * text. The caller frees the text with loadline_free(). */
int32_t loadline_create(const void* config, size_t config_size, loadline_engine** engine, char** error);

/* Calls one method. `request` stays the caller's. `timeout_ns` is the time the caller is willing to wait,
 * counted from now; 0 or less: no limit. Returns 0 and sets *response and *response_size; or returns an
 * absl::StatusCode, sets *response to NULL, *response_size to 0 and *error to a NUL-terminated text. On
 * success *error is NULL. The caller frees either with loadline_free(). An empty response may be a NULL
 * pointer. Codes: 3 wrong in any state, 5 no such view, 8 a limit of the engine (named), 9 wrong in this
 * state, 4 out of time, 12 no such method, 13 a bug of the engine. */
int32_t loadline_call(loadline_engine* engine, const char* method, const void* request, size_t request_size,
                      int64_t timeout_ns, void** response, size_t* response_size, char** error);

/* The same, for a thread that must not wait for other calls: where this one would have to, nothing is done,
 * and 10 (aborted) is returned. */
int32_t loadline_try_call(loadline_engine* engine, const char* method, const void* request,
                          size_t request_size, int64_t timeout_ns, void** response, size_t* response_size,
                          char** error);

/* Returns what programs read of an error: a serialized google.rpc.Status of *size bytes, with its code, its
 * text, and a google.rpc.ErrorInfo: docs/api.md. `error` is a text that loadline_create() or one of the calls
 * returned; the bytes go with it. NULL, and 0 bytes, if it is NULL or `size` is. */
const void* loadline_error_details(const char* error, size_t* size);

/* Frees what loadline_create() or one of the calls returned. NULL is allowed. */
void loadline_free(void* memory);

/* Destroys an engine. No call may be under way in it. NULL is allowed. */
void loadline_destroy(loadline_engine* engine);

/* Version of the engine, such as "0.1.0"; static, never NULL. */
const char* loadline_version(void);

#ifdef __cplusplus
}
#endif

#endif /* LOADLINE_PLUGIN_ABI_LOADLINE_H_ */
