//go:build !amd64 && !arm64

package memstore

import "unsafe"

func prefetch(unsafe.Pointer) {}
