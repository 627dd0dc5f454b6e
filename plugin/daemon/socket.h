// The unix socket's path, and the lock that keeps a second daemon away from it.
#ifndef LOADLINE_PLUGIN_DAEMON_SOCKET_H_
#define LOADLINE_PLUGIN_DAEMON_SOCKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace loadline {

// kInvalidArgument when no socket can be made at `path`: too long for the kernel, or something else lies
// there. A socket that a killed daemon left behind is no obstacle.
absl::Status CheckSocketPath(const std::string& path);

// Holds PATH.lock. gRPC removes an existing socket before it binds, so without a lock a second daemon would
// silently take the path from the first one. The file stays when the lock is released: removing it would let
// two daemons lock two files of one name.
class SocketLock {
 public:
  // kAlreadyExists: another process holds it. Others: the file cannot be opened.
  static absl::StatusOr<SocketLock> Acquire(const std::string& socket_path);

  SocketLock(SocketLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  SocketLock& operator=(SocketLock&&) = delete;
  ~SocketLock();

 private:
  explicit SocketLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_SOCKET_H_
