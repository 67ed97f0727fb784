import { endWithGuard, guard, isGuarded } from '../../../worker/guard.ts'

// A program that is guarded as a worker is, and ends as ENDS says: `heap`, a signal, or an exit code.
if (isGuarded()) {
  endWithGuard()
  console.log(`pid ${process.pid}`)
  await new Promise((resolve) => process.stdout.write('', resolve))
  const how = process.env.ENDS ?? ''
  if (how === 'heap') fill()
  else if (how.startsWith('SIG')) process.kill(process.pid, how)
  else if (how !== 'never') process.exit(Number(how))
  setInterval(() => {}, 60_000)
} else await guard(process.argv[1]!)

function fill(): void {
  const kept: object[] = []
  for (;;) kept.push({ kept: kept.length })
}
