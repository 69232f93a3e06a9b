-- The record of the deployment's line, one a shard: version, epoch, adjustment, the last
-- stamp on the line, the raw reading it was made at, who made it, and a vote: machine,
-- deviation, raw reading. A second key holds who stamped lately. Read and written by this script
-- only.
--
-- ARGV: read, or leave, or stamp with lo hi adj, the epoch that the caller knows, the caller, its
-- machine, and its vote: how far the raw reading and the record's adjustment are ahead of
-- the line, or nothing. Reply: raw, epoch, adjustment, and the stamp of before: line, raw, 1
-- if it was another caller's; and how many callers there are.

local t = redis.call('TIME')
local raw = t[1] * 1000000 + t[2]
local epoch, adj, line, at, who, machine, dev, voted = 0, 0, 0, 0, '-', '-', 0, 0
local r = redis.call('GET', KEYS[1])
if r then
  if string.byte(r) ~= 49 then return redis.error_reply('LINE unknown version ' .. string.byte(r)) end
  local f = {}
  for w in string.gmatch(r, '%S+') do f[#f + 1] = w end
  epoch, adj, line, at, who, machine, dev, voted = f[2] + 0, f[3] + 0, f[4] + 0, f[5] + 0, f[6], f[7], f[8] + 0, f[9] + 0
end
local before = {line, at, who ~= ARGV[6] and 1 or 0}
if ARGV[1] == 'leave' then redis.call('ZREM', KEYS[2], ARGV[6]) end
if ARGV[1] == 'stamp' then
  local mine = tonumber(ARGV[8])
  if mine and ARGV[5] + 0 == epoch then
    if machine ~= '-' and machine ~= ARGV[7] and math.abs(dev - mine) <= 4000 and raw >= voted and raw - voted <= 2000000 then
      epoch, adj, machine = epoch + 1, adj - mine, '-'
    else
      machine, dev, voted = ARGV[7], mine, raw
    end
  end
  -- The line never goes back: who is behind the last stamp has lost time, and does not stamp.
  local mark = math.max(ARGV[2] + 0, math.min(ARGV[3] + 0, raw + ARGV[4]))
  if mark >= line then line, at, who = mark, raw, ARGV[6] end
  redis.call('SET', KEYS[1], string.format('1 %.0f %.0f %.0f %.0f %s %s %.0f %.0f', epoch, adj, line, at, who, machine, dev, voted), 'PX', 86400000)
  redis.call('ZADD', KEYS[2], line, ARGV[6])
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', line - 5000000))
  redis.call('PEXPIRE', KEYS[2], 60000)
end
return {raw, epoch, adj, before[1], before[2], before[3], redis.call('ZCARD', KEYS[2])}
