import type { ConnectorAction, ConnectorStep } from '../connector.ts'
import { fileInput, nameInput, objectInput, recordInput, textInput } from '../schemas.ts'
import { askGithub, given, OF_REPO, REPO, repository, request } from './githubparts.ts'

const path = nameInput('Path', 'Where the file is, such as docs/readme.md.')
const ref = {
  ref: textInput('Version', 'A branch, a tag or a commit. The standard branch, unless it is set.'),
}
const commit = {
  message: nameInput('Message', 'What the commit says.'),
  branch: textInput('Branch', 'Where it is committed. The standard branch, unless it is set.'),
  author: recordInput('Author', 'Its author, as {"name": ..., "email": ...}.'),
  committer: recordInput('Committer', 'Who commits it, in the same form.'),
}
const content = {
  text: textInput('Text', 'The content of the file.'),
  base64: textInput('Base64', 'The content as Base64, in place of the text.'),
  file: fileInput('File', 'A file of the execution, in place of both.'),
}
const PATH = `${REPO}/contents/{{ $input.path }}`
const committed = given('message', 'branch', 'author', 'committer')

/** The file as it is before the change: every attempt goes on with the version that the first one saw. */
const before = (takes: number[] = []): ConnectorStep =>
  askGithub({
    ...{ name: 'before', method: 'GET', path: PATH, query: { ref: '{{ $input.branch }}' }, keep: true },
    ...(takes.length > 0 ? { takes } : {}),
  })

/**
 * A commit that is refused by then because an earlier attempt has made it. The content that is there tells whether it was
 * that one.
 */
const recovered: ConnectorAction['steps'] = [
  askGithub({
    ...{ name: 'there', when: '$args.write.status >= 400', method: 'GET', path: PATH },
    query: { ref: '{{ $input.branch }}' },
    takes: [404],
  }),
  askGithub({
    ...{ name: 'commits', when: '$args.write.status >= 400', method: 'GET', path: `${REPO}/commits` },
    query: { path: '{{ $input.path }}', sha: '{{ $input.branch }}', per_page: '1' },
  }),
  {
    name: 'recovered',
    when: '$args.write.status >= 400',
    make: 'githubWritten',
    of: { there: '{{ $nodes.there }}', commits: '{{ $nodes.commits }}', sha: '{{ $nodes.content.sha }}' },
  },
]
const make: ConnectorAction['steps'][number] = {
  name: 'content',
  make: 'githubContent',
  of: given(...Object.keys(content)),
}
const RESULT = '$exists($nodes.recovered) ? $nodes.recovered : $nodes.write'

/** A commit of a file. With `sha` it takes the place of that version alone. */
const write = (sha: string | null, when?: string): ConnectorStep =>
  askGithub({
    ...{ name: 'write', method: 'PUT', path: PATH, ...(when === undefined ? {} : { when }) },
    body: { ...committed, content: '{{ $nodes.content.base64 }}', ...(sha === null ? {} : { sha }) },
    done: [409, 422],
  })

const writing = { ...repository, path, ...content, ...commit }
const WRITES = [...OF_REPO, 'path', 'message']
const IS_NEW = '$nodes.content.sha != $nodes.before.sha or $not($exists($nodes.before.sha))'
const SAME = '{"content": $nodes.before, "commit": null}'

export const FILES_OF_GITHUB: Record<string, ConnectorAction> = {
  getFile: request(
    'REPEATABLE',
    ['Get a file', 'Reads what GitHub says of a file, with its content in Base64 if that has at most 1 MB.'],
    [{ ...repository, path, ...ref }, [...OF_REPO, 'path']],
    { method: 'GET', path: PATH, query: given('ref') },
  ),
  downloadFile: request(
    'REPEATABLE',
    ['Download a file', 'Gets a file of a repository as a file of the execution.'],
    [{ ...repository, path, ...ref }, [...OF_REPO, 'path']],
    {
      ...{
        method: 'GET',
        path: PATH,
        query: given('ref'),
        answer: 'file',
        fileType: 'application/octet-stream',
      },
      headers: { accept: 'application/vnd.github.raw+json' },
      fileName: '{{ $split($input.path, "/")[-1] }}',
    },
  ),
  listFiles: {
    name: 'List files',
    summary: 'Reads what is in a folder of a repository.',
    safety: 'REPEATABLE',
    input: objectInput(
      { ...repository, path: textInput('Folder', 'The folder; the top, unless it is set.'), ...ref },
      OF_REPO,
    ),
    steps: [
      askGithub({
        ...{
          name: 'inside',
          when: '$length($input.path) > 0',
          method: 'GET',
          path: PATH,
          query: given('ref'),
        },
      }),
      askGithub({
        ...{ name: 'top', when: '$not($length($input.path) > 0)', method: 'GET' },
        ...{ path: `${REPO}/contents`, query: given('ref') },
      }),
      {
        name: 'folder',
        make: 'githubFolder',
        of: '{{ $exists($nodes.inside) ? {"entries": $nodes.inside} : {"entries": $nodes.top} }}',
      },
    ],
  },
  createFile: {
    name: 'Create a file',
    summary: 'Commits a file that is not there yet.',
    safety: 'REPEATABLE',
    input: objectInput(writing, WRITES),
    steps: [make, write(null), ...recovered],
    result: `{{ ${RESULT} }}`,
  },
  editFile: {
    name: 'Change a file',
    summary:
      'Commits another content of a file that is there. One that has the content already stays as it is.',
    safety: 'REPEATABLE',
    input: objectInput(writing, WRITES),
    steps: [make, before(), write('{{ $nodes.before.sha }}', IS_NEW), ...recovered],
    result: `{{ ${IS_NEW} ? (${RESULT}) : ${SAME} }}`,
  },
  writeFile: {
    name: 'Create or change a file',
    summary: 'Commits a file, whether it is there or not. One that has the content already stays as it is.',
    safety: 'REPEATABLE',
    input: objectInput(writing, WRITES),
    steps: [make, before([404]), write('{{ $nodes.before.sha }}', IS_NEW), ...recovered],
    result: `{{ ${IS_NEW} ? (${RESULT}) : ${SAME} }}`,
  },
  deleteFile: {
    name: 'Delete a file',
    summary: 'Commits that a file is gone.',
    safety: 'REPEATABLE',
    input: objectInput({ ...repository, path, ...commit }, WRITES),
    steps: [
      before(),
      askGithub({
        ...{ name: 'delete', method: 'DELETE', path: PATH },
        body: { ...committed, sha: '{{ $nodes.before.sha }}' },
        done: [404],
      }),
    ],
    result: '{{ $args.delete.status = 404 ? {"content": null, "commit": null} : $nodes.delete }}',
  },
}
