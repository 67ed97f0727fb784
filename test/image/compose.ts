import { readFileSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export type Service = {
  build?: { dockerfile_inline: string }
  command?: string[]
  environment: Record<string, string>
  read_only?: boolean
  tmpfs?: string[]
  stop_grace_period?: string
}
export type Instruction = { word: string; rest: string }

/** The services of temporal-dev.yml. `variables` are what a user has exported; a demanded one that is missing throws. */
export function readCompose(variables: Record<string, string>): Record<string, Service> {
  const text = readFileSync(`${ROOT}temporal-dev.yml`, 'utf8')
  const { services } = parse(text, { merge: true }) as { services: Record<string, Service> }
  const filled = JSON.stringify(services, (_, value) =>
    typeof value === 'string' ? fill(value, variables) : value,
  )
  return JSON.parse(filled) as Record<string, Service>
}

/** `${NAME:-default}`, `${NAME:?why}` and `$$`, as Compose reads them. */
function fill(text: string, variables: Record<string, string>): string {
  return text.replace(
    /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (whole, name: string, how: string, rest: string) => {
      if (whole === '$$') return '$'
      const value = variables[name]
      if (value) return value
      if (how === '?') throw new Error(`temporal-dev.yml demands ${name}: ${rest}`)
      return rest ?? ''
    },
  )
}

/** The instructions of the Dockerfile that the API's service names; one instruction a line. */
export function readDockerfile(services: Record<string, Service>): Instruction[] {
  const lines = services.api!.build!.dockerfile_inline.replace(/\\\n/g, ' ').split('\n')
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, word, rest] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? []
      if (!word || !rest || rest.startsWith('--')) throw new Error(`this check cannot carry out: ${line}`)
      return { word, rest }
    })
}

/** Whether .dockerignore keeps this path, relative to the clone, out of what is copied. */
export function readIgnored(): (path: string) => boolean {
  const lines = readFileSync(`${ROOT}.dockerignore`, 'utf8').split('\n')
  const patterns = lines.map((line) => line.trim().replace(/^\/|\/$/g, '')).filter((line) => line !== '')
  if (patterns.some((pattern) => /^[!#]/.test(pattern))) throw new Error('this check knows neither ! nor #')
  return (path) => {
    const parts = path.split('/')
    const above = parts.map((_, i) => parts.slice(0, i + 1).join('/'))
    return above.some((folder) => patterns.some((pattern) => matchesGlob(folder, pattern)))
  }
}
