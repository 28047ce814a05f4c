package engines

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"runtime"
)

// The versions that are fetched. Changing one, or what is embedded here,
// gives the engine another place in the cache.
const (
	dynoxideVersion   = "1.2.1"
	elasticMQVersion  = "1.7.1"
	openSearchVersion = "2.19.6"
)

//go:embed java/opensearch-pom.xml
var openSearchPOM []byte

//go:embed java/elasticmq-pom.xml
var elasticMQPOM []byte

//go:embed java/OsLauncher.java
var openSearchLauncher []byte

// dynoxidePackage is the npm package with the binary for a machine, such as
// @dynoxide/linux-x64.
func dynoxidePackage(goos, goarch string) (string, error) {
	cpu, ok := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	if !ok || goos != "linux" && goos != "darwin" {
		return "", fmt.Errorf("dynoxide is not published for %s/%s; linux and macOS on amd64 or arm64 are supported", goos, goarch)
	}
	return "@dynoxide/" + goos + "-" + cpu, nil
}

// place is the directory of an engine inside the cache. Its name changes with
// everything that its content depends on.
func place(n Name) string {
	switch n {
	case DynamoDB:
		return "dynoxide-" + dynoxideVersion + "-" + digest([]byte(runtime.GOOS+"/"+runtime.GOARCH))
	case SQS:
		return "elasticmq-" + elasticMQVersion + "-" + digest(elasticMQPOM)
	case OpenSearch:
		return "opensearch-" + openSearchVersion + "-" + digest(openSearchPOM, openSearchLauncher)
	}
	return "" // S3 is part of this program
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
