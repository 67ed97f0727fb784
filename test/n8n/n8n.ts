import { openCluster } from './cluster.ts'

const [what, ...rest] = process.argv.slice(2)

if (what === 'record') {
  const { recordCases } = await import('./record.ts')
  const cluster = await openCluster()
  try {
    await recordCases(cluster.url, rest)
  } finally {
    await cluster.stop()
  }
}
