import { parseArgs } from 'node:util'

/**
 * `npm run n8n [-- names]` compares; `-- record [names]` records real n8n anew; `-- note` compares and keeps what it
 * finds as the ratchet; `-- templates <files or folders>` imports collections of workflows and counts; `-- defaults`
 * writes the table of the models that n8n's nodes have when none is named.
 */
const COMMANDS = ['compare', 'note', 'record', 'templates', 'defaults']
const { positionals } = parseArgs({ allowPositionals: true })
const named = COMMANDS.includes(positionals[0] ?? '')
const what = named ? positionals[0] : 'compare'
const rest = positionals.slice(named ? 1 : 0)

if (what === 'defaults') {
  const { writeDefaults } = await import('./defaults.ts')
  writeDefaults()
} else if (what === 'record') {
  const [{ openCluster }, { recordCases }] = await Promise.all([
    import('./cluster.ts'),
    import('./record.ts'),
  ])
  const cluster = await openCluster()
  await recordCases(cluster.url, rest).finally(cluster.stop)
} else {
  const { startStand } = await import('../bench/stand.ts')
  const stand = await startStand()
  const send = (path: string, init: RequestInit) => fetch(stand.url + path, init)
  const host = { teamId: stand.teamId, ask: stand.ask, send }
  try {
    if (what === 'templates') {
      const { countTemplates } = await import('./templates.ts')
      await countTemplates(host, rest)
    } else {
      const { showComparison } = await import('./show.ts')
      process.exitCode = (await showComparison(host, rest, what === 'note')) ? 0 : 1
    }
  } finally {
    await stand.stop()
  }
}
