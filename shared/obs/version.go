package obs

import "runtime/debug"

// Version is the version of the program, or "devel" for a build from a working
// copy.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
