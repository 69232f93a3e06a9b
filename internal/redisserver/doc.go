// Package redisserver runs a redis-server of its own on a free loopback port, for replays
// and drills. On Linux it ends with this process at the latest.
package redisserver
