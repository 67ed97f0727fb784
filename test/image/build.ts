import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { CACHE } from '../support/cache.ts'
import { type Instruction, ROOT, readIgnored } from './compose.ts'
import { type Place, runRooted } from './rooted.ts'

const NODE = realpathSync(join(ROOT, 'node_modules/.bin/node'))
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const NODE_USER = { name: 'node', id: '1000:1000' }

/** What an image says to those who start a container of it. */
export type Image = Pick<Place, 'root' | 'cwd' | 'env'> & { user: string }

/** Carries out the instructions of a Dockerfile in `root`, each as the user and in the folder that it would have. */
export async function buildImage(
  root: string,
  steps: Instruction[],
  say: (line: string) => void,
): Promise<Image> {
  const image: Image = { root, cwd: '/', user: '0:0', env: { PATH: '/usr/local/bin:/usr/bin:/bin' } }
  for (const { word, rest } of steps) {
    const since = Date.now()
    if (word === 'FROM') layBase(root, rest)
    else if (word === 'WORKDIR') {
      image.cwd = rest
      mkdirSync(join(root, rest), { recursive: true })
    } else if (word === 'COPY') copy(image, rest.split(/\s+/))
    else if (word === 'USER') image.user = readUser(rest)
    else if (word === 'ENV') setVariables(image, rest)
    else if (word === 'RUN') await runStep(image, rest)
    else throw new Error(`this check cannot carry out ${word}`)
    say(`${word} ${rest} (${((Date.now() - since) / 1000).toFixed(1)} s)`)
  }
  return image
}

/** Debian's own packages, this project's Node and this machine's npm take the place of the image of the same name. */
function layBase(root: string, name: string): void {
  const [, major, suite] = /^node:(\d+)-(\w+)-slim$/.exec(name) ?? []
  if (!major || !suite) throw new Error(`this check has no base like ${name}`)
  const version = execFileSync(NODE, ['--version'], { encoding: 'utf8' }).trim()
  if (!version.startsWith(`v${major}.`)) throw new Error(`${name} is not the project's Node, ${version}`)
  const archive = join(CACHE, `debian-${suite}.tar`)
  if (!existsSync(archive)) {
    mkdirSync(CACHE, { recursive: true })
    const made = `${archive}.${process.pid}`
    const args = ['--quiet', '--variant=minbase', '--include=ca-certificates', '--format=tar', suite, made]
    execFileSync('mmdebstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    renameSync(made, archive)
  }
  execFileSync('tar', ['-xf', archive, '-C', root, '--exclude=./dev/*'])
  const local = join(root, 'usr/local')
  cpSync(NODE, join(local, 'bin/node'))
  const modules = execFileSync('npm', ['root', '-g'], { encoding: 'utf8' }).trim()
  cpSync(join(modules, 'npm'), join(local, 'lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'))
  appendFileSync(join(root, 'etc/passwd'), `node:x:${NODE_USER.id}::/home/node:/bin/bash\n`)
  appendFileSync(join(root, 'etc/group'), 'node:x:1000:\n')
  mkdirSync(join(root, 'home/node'), { recursive: true })
  for (const file of ['resolv.conf', 'hosts']) writeFileSync(join(root, 'etc', file), '')
}

function copy({ root, cwd }: Image, names: string[]): void {
  const target = names.pop()!
  if (!target.endsWith('/') && target !== '.')
    throw new Error(`COPY to ${target}: this check copies into folders`)
  const isIgnored = readIgnored()
  const to = join(root, cwd, target)
  for (const name of names) {
    if (name !== '.') {
      if (isIgnored(name)) throw new Error(`COPY ${name}: .dockerignore leaves it out`)
      cpSync(join(ROOT, name), join(to, name))
      continue
    }
    for (const entry of readdirSync(ROOT, { recursive: false })) copyTree(String(entry), to, isIgnored)
  }
}

function copyTree(path: string, to: string, isIgnored: (path: string) => boolean): void {
  const filter = (source: string) => !isIgnored(source.slice(ROOT.length))
  if (filter(join(ROOT, path))) cpSync(join(ROOT, path), join(to, path), { recursive: true, filter })
}

function readUser(name: string): string {
  if (name !== NODE_USER.name) throw new Error(`the base has no user ${name}`)
  return NODE_USER.id
}

function setVariables({ env }: Image, text: string): void {
  for (const [, name, value] of text.matchAll(/(\w+)=("[^"]*"|\S+)/g)) env[name!] = value!.replaceAll('"', '')
}

/** Packages come from where this machine's npm has them from, with its cache; nothing of both stays in the image. */
async function runStep(image: Image, command: string): Promise<void> {
  const ask = (key: string) => execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim()
  const binds: Record<string, string> = {}
  for (const file of ['/etc/resolv.conf', '/etc/hosts', '/etc/ssl/certs/ca-certificates.crt'])
    binds[file] = file
  const bindAs = (to: string, from: string, isFolder: boolean) => {
    if (!existsSync(from)) return
    const path = join(image.root, to)
    mkdirSync(isFolder ? path : dirname(path), { recursive: true })
    if (!isFolder) writeFileSync(path, '')
    binds[to] = from
  }
  bindAs('/root/.npm', ask('cache'), true)
  bindAs('/root/.npmrc', ask('userconfig'), false)
  const passed = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name))
  const trusted = { HOME: '/root', NODE_EXTRA_CA_CERTS: CERTIFICATES }
  const env = { ...trusted, ...(Object.fromEntries(passed) as Record<string, string>), ...image.env }
  const step = runRooted({ ...image, env, binds }, ['/bin/sh', '-c', command])
  const code = await step.ended
  if (code !== 0) throw new Error(`RUN ${command} ended with ${code}:\n${step.output().slice(-4_000)}`)
}
