package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// longKey is the longest identity that stands in a key as it is.
const longKey = 128

// key is where the record of a limit for an identity is kept: the prefix, the identity
// with its length as the hash tag, the limit. The length keeps the tag from being empty
// and two identities from running into each other; what follows a brace in an identity
// is outside the tag for every limit alike, so its limits still share a slot.
func key(prefix, limit, identity string) string {
	tag := strconv.Itoa(len(identity)) + ":" + identity
	if len(identity) > longKey {
		sum := sha256.Sum256([]byte(identity))
		tag = "#" + hex.EncodeToString(sum[:16])
	}
	return prefix + "{" + tag + "}" + limit
}

// slot is the slot of a cluster that holds a key.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// lineKey is the key of the line's record: for a cluster the first one whose slot the
// shard holds.
func lineKey(prefix string, holds func(slot uint16) bool) string {
	for i := 0; ; i++ {
		k := prefix + "{line" + strconv.Itoa(i) + "}"
		if holds == nil || holds(slot(k)) || i == 1<<20 {
			return k
		}
	}
}
