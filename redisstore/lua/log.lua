-- rolling_window up to 64: ring holds the instants of the newest count units, oldest
-- first, a little-endian 64-bit word each; a is how many there are, at the newest instant
-- judged. Plan: per count.

local function logPlan(v) return {per = v[1], count = v[2]} end

local function entry(s, i) return (struct.unpack('<I8', s.ring, 8 * i + 1)) end

local function expired(p, s, now)
  local i = 0
  while i < s.a and entry(s, i) + p.per <= now do i = i + 1 end
  return i
end

local function peekLog(p, s, now, cost)
  now = max(now, s.at)
  local gone = expired(p, s, now)
  local used, free = s.a - gone, 0
  if used > 0 then free = entry(s, s.a - 1) + p.per end
  if cost == 0 then return true, used, 0, free end
  if cost > p.count then return false, used, 0, free end
  local over = used - (p.count - cost)
  if over > 0 then return false, used, entry(s, gone + over - 1) + p.per - now, free end
  return true, used, 0, free
end

-- keep drops all but the newest n instants.
local function keep(s, n)
  if s.a > n then
    s.ring = sub(s.ring, 8 * (s.a - n) + 1)
    s.a = n
  end
end

local function pushLog(p, s, now, units)
  keep(s, s.a - expired(p, s, now))
  s.ring = (s.ring or '') .. string.rep(struct.pack('<I8', now), units)
  s.a = s.a + units
  keep(s, p.count)
  s.at, s.dirty = now, true
end

local function takeLog(p, s, now, cost)
  now = max(now, s.at)
  local ok, used, wait, free = peekLog(p, s, now, cost)
  if ok and cost > 0 then
    pushLog(p, s, now, cost)
    used, free = used + cost, now + p.per
  end
  return ok, used, wait, free
end

local function insertLog(p, s, now, stamp, units)
  local at, ring = s.at, s.ring
  s.ring = s.ring or ''
  keep(s, s.a - expired(p, s, now))
  for _ = 1, units do
    if s.a == p.count then
      if entry(s, 0) >= stamp then break end
      keep(s, s.a - 1)
    end
    local i = s.a
    while i > 0 and entry(s, i - 1) > stamp do i = i - 1 end
    s.ring = sub(s.ring, 1, 8 * i) .. struct.pack('<I8', stamp) .. sub(s.ring, 8 * i + 1)
    s.a = s.a + 1
  end
  s.at = now
  s.dirty = s.dirty or s.at ~= at or s.ring ~= ring
end

local function chargeLog(p, s, now, units, stamp)
  if stamp + p.per <= now then return 0 end
  insertLog(p, s, now, stamp, min(units, p.count))
  return units
end

local function refundLog(p, s, now, units, from)
  now = max(now, s.at)
  if from + p.per <= now or not s.ring then return 0 end
  local i = 0
  while i < s.a and entry(s, i) < from do i = i + 1 end
  local j = i
  while j < s.a and j - i < units and entry(s, j) == from do j = j + 1 end
  if j > i then
    s.ring = sub(s.ring, 1, 8 * i) .. sub(s.ring, 8 * j + 1)
    s.a, s.dirty = s.a - (j - i), true
  end
  return j - i
end

reset.l = function(p, s, now)
  local _, _, _, free = peekLog(p, s, now, 0)
  return free - now
end
