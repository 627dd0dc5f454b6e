package engine

// Version is that of the clients in this module. A test holds it equal to the version of the engine's build.
const Version = "0.1.0"
