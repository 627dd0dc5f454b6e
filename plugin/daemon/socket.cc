#include "plugin/daemon/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace loadline {

absl::Status CheckSocketPath(const std::string& path) {
  constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxPath) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path ", path, " has ", path.size(), " bytes, the system allows ", kMaxPath));
  }
  struct stat existing;
  if (lstat(path.c_str(), &existing) == 0 && !S_ISSOCK(existing.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path ", path, " is there and not a socket"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SocketLock> SocketLock::Acquire(const std::string& socket_path) {
  const std::string path = absl::StrCat(socket_path, ".lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the lock file ", path));
  SocketLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
  return absl::AlreadyExistsError(
      absl::StrCat("another loadlined serves ", socket_path, ": it holds ", path));
}

SocketLock::~SocketLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace loadline
