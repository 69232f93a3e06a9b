-- takes.lua for token_bucket and gcra, the most frequent call of all, written out: a
-- function call costs as much here as the arithmetic. Same arguments, same reply. Plan:
-- n p full tick.

local call, try, type = redis.call, redis.pcall, type
local format, sub, byte, floor = string.format, string.sub, string.byte, math.floor
local INSTANT = 4503599627370495
local lo, hi, adj, margin, n, p, full, tick = struct.unpack('<dddddddd', ARGV[1])
local raw, now, text = 0, lo, ARGV[2]
if adj == adj then
  local t = call('TIME')
  raw = t[1] * 1000000 + t[2]
  now = raw + adj
  if now > hi then now = hi end
  if now < lo then now = lo end
end
margin = margin + 1
local pattern, last, expiry = '1 %016d %016d ' .. text, -1, nil
local out, k = {raw, now}, 2

for i = 1, #KEYS do
  local key = KEYS[i]
  local r = try('GET', key)
  if r and (type(r) ~= 'string' or sub(r, 37) ~= text or byte(r) ~= 49) then
    k = k + 1
    out[k] = -1
  else
    local at, a = 0, 0
    if r then at, a = sub(r, 3, 18) + 0, sub(r, 20, 35) + 0 end
    -- The backlog now, and with the claim. Beyond 2^53 products are rounded, and then
    -- exceed every backlog and capacity either way.
    local t, b = at, a
    if a == 0 then
      t = now - now % tick
      if at > t then t = at end
    elseif now > at then
      local elapsed = floor((now - at) / tick)
      t, b = at + elapsed * tick, a - elapsed * n
      if b < 0 then b = 0 end
    end
    local cost, ok = ARGV[2 + i] + 0, 0
    b = b + cost * p
    if cost == 0 then
      ok = 1
    elseif b <= full then
      ok = 1
      local left = t - now + b / n * tick
      if left > INSTANT then left = INSTANT end
      left = floor(left / 1000) + margin
      if left ~= last then last, expiry = left, format('%d', left) end
      call('SET', key, format(pattern, t, b), 'PX', expiry)
    end
    out[k + 1], out[k + 2], out[k + 3] = ok, at, a
    k = k + 3
  end
end
return out
