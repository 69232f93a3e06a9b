-- takes.lua for a rolling_window above 64, written out as takes_bucket.lua is. Same
-- arguments, same reply. Plan: per width buckets count.

local call, try, type = redis.call, redis.pcall, type
local format, sub, byte = string.format, string.sub, string.byte
local pack, unpack = struct.pack, struct.unpack
local lo, hi, adj, margin, _, width, buckets, count = unpack('<dddddddd', ARGV[1])
local raw, now, text = 0, lo, ARGV[2]
if adj == adj then
  local t = call('TIME')
  raw = t[1] * 1000000 + t[2]
  now = raw + adj
  if now > hi then now = hi end
  if now < lo then now = lo end
end
margin = margin + 1
local size, to = buckets + 1, 37 + #text
local out, n = {raw, now}, 2

for k = 1, #KEYS do
  local key = KEYS[k]
  local r = try('GET', key)
  if r and (type(r) ~= 'string' or #r ~= to + 4 * size or sub(r, 37, to) ~= text .. '\n' or byte(r) ~= 49) then
    n = n + 1
    out[n] = -1
  else
    local at, a, ring = 0, 0, nil
    if r then at, a, ring = sub(r, 3, 18) + 0, sub(r, 20, 35) + 0, sub(r, to + 1) end
    local t = now
    if at > t then t = at end
    local start = t - t % width
    if at > start then start = at end
    -- What has left the window, up to the bucket of now.
    local gone, used = (start - at) / width, a
    if gone > buckets then
      gone, used = size, 0
    else
      for j = 1, gone do used = used - unpack('<I4', ring, 4 * ((at / width + j) % size) + 1) end
    end
    local cost, ok, wait, free = ARGV[2 + k] + 0, 0, 0, 0
    if cost > 0 and cost <= count and used <= count - cost then
      ok = 1
      if gone == size then
        ring = string.rep('\0', 4 * size)
      else
        local first = (at / width + 1) % size
        for j = 0, gone - 1 do
          local p = 4 * ((first + j) % size)
          if unpack('<I4', ring, p + 1) ~= 0 then ring = sub(ring, 1, p) .. '\0\0\0\0' .. sub(ring, p + 5) end
        end
      end
      local p = 4 * (start / width % size)
      used, free = used + cost, start + size * width
      call('SET', key, format('1 %016d %016d %s\n', start, used, text) .. sub(ring, 1, p) ..
        pack('<I4', unpack('<I4', ring, p + 1) + cost) .. sub(ring, p + 5), 'PX', format('%d', (free - t) / 1000 + margin))
    else
      -- When all is free again, and when the claim would fit.
      if used > 0 then
        local b = at
        while b > at - size * width and unpack('<I4', ring, 4 * (b / width % size) + 1) == 0 do b = b - width end
        free = b + size * width
      end
      if cost == 0 then
        ok = 1
      elseif cost <= count then
        local over, b = used - (count - cost), start - buckets * width
        while over > 0 and b <= at do
          over = over - unpack('<I4', ring, 4 * (b / width % size) + 1)
          b = b + width
        end
        wait = b + buckets * width - t
      end
    end
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = ok, free, used, wait, t
    n = n + 5
  end
end
return out
