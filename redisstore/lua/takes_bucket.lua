-- takes.lua for token_bucket and gcra, the most frequent call of all, written out: a
-- function call costs as much here as the arithmetic. Same arguments, same reply. Plan:
-- n p full tick.

local call, try, type = redis.call, redis.pcall, type
local format, sub, byte, floor = string.format, string.sub, string.byte, math.floor
local INSTANT = 4503599627370495
local raw, now = 0, ARGV[1] + 0
if ARGV[3] ~= '-' then
  local t = call('TIME')
  raw = t[1] * 1000000 + t[2]
  local lo, hi = now, ARGV[2] + 0
  now = raw + ARGV[3]
  if now > hi then now = hi end
  if now < lo then now = lo end
end
local margin, text = ARGV[4] + 1, ARGV[5]
local n, p, full, tick = ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0, ARGV[10] + 0
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
    local cost, ok = ARGV[10 + i] + 0, 0
    b = b + cost * p
    if cost == 0 then
      ok = 1
    elseif b <= full then
      ok = 1
      local left = t - now + b / n * tick
      if left > INSTANT then left = INSTANT end
      call('SET', key, format('1 %016d %016d %s', t, b, text), 'PX', format('%d', left / 1000 + margin))
    end
    out[k + 1], out[k + 2], out[k + 3] = ok, at, a
    k = k + 3
  end
end
return out
