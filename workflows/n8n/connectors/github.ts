import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { fileOf } from '../nodes/fileparts.ts'
import { readLocator, readOptionFields } from '../send/messenger.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, writeCode, writeLiteral } from '../texts.ts'
import { demandOperation, readMost, type ServiceReader, type ServiceWork, type WorkReader } from './action.ts'

/** GitHub's node. */
export const readGithub: ServiceReader = (node, tools) => {
  const { authentication = 'accessToken', resource = 'issue' } = node.parameters
  const operation = node.parameters.operation ?? USUAL[String(resource)]
  const read = demandOperation(OPERATIONS, 'GitHub', { resource, operation })
  const credential = CREDENTIALS[String(authentication)]
  if (credential === undefined)
    throw new Error('it signs in as an app of GitHub: use an HTTP_REQUEST with a token of your own')
  return { connector: 'github', credential, ...read(node, tools) }
}

const CREDENTIALS: Record<string, string> = { accessToken: 'githubApi', oAuth2: 'githubOAuth2Api' }
const USUAL: Record<string, string> = {
  ...{ file: 'create', issue: 'create', release: 'create', pullRequest: 'create', review: 'create' },
  ...{
    repository: 'getIssues',
    user: 'getRepositories',
    organization: 'getRepositories',
    workflow: 'dispatch',
  },
}

const ownerOf = ({ parameters }: SourceNode) =>
  readLocator(parameters.owner, /https:\/\/github\.com\/([\w-]+)/)
const of = (node: SourceNode): Fields => ({
  owner: ownerOf(node),
  repo: readLocator(node.parameters.repository, /https:\/\/github\.com\/[\w-]+\/([\w.-]+)/),
})
const plain =
  (action: string, more: (node: SourceNode) => Fields = () => ({}), shape?: string): WorkReader =>
  (node) => ({ action, input: { ...of(node), ...more(node) }, ...(shape === undefined ? {} : { shape }) })

const issueOf = ({ parameters }: SourceNode): Fields => ({ issue: keepTexts(parameters.issueNumber ?? '') })
const pullOf = ({ parameters }: SourceNode): Fields => ({
  pull: keepTexts(parameters.pullRequestNumber ?? ''),
})
const pullIssueOf = (node: SourceNode): Fields => ({ issue: pullOf(node).pull })
const releaseOf = ({ parameters }: SourceNode): Fields => ({
  release: keepTexts(parameters.release_id ?? ''),
})
const reviewOf = ({ parameters }: SourceNode): Fields => ({ review: keepTexts(parameters.reviewId ?? '') })
const workflowOf = ({ parameters }: SourceNode): Fields => ({ workflow: readLocator(parameters.workflowId) })
/** A text, which may be a number in n8n. */
const wordsOf = (given: unknown) =>
  isTemplate(given)
    ? `={{ (text => typeof text === 'number' ? String(text) : text)(${writeCode(given)}) }}`
    : keepText(given ?? '')
const saidOf = ({ parameters }: SourceNode): Fields => ({ body: wordsOf(parameters.body) })
const mostOf = (node: SourceNode): Fields => readMost(node, { limit: 50 })
const filters = (key: string) => (node: SourceNode) => ({
  ...keepGiven(readOptionFields(node, key)),
  ...mostOf(node),
})

const keepGiven = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (value === '' ? [] : [[key, keepTexts(value)]])),
  )

/** Names that n8n's editor keeps as objects of one key. */
function namesOf(given: unknown, key: string): unknown {
  if (isTemplate(given)) return `={{ (${writeCode(given)}).map(one => one.${key}) }}`
  return listObjects(given).map((one) => keepText(one[key]))
}

function editedOf(node: SourceNode): Fields {
  const { labels, assignees, ...rest } = readOptionFields(node, 'editFields')
  return {
    ...(keepTexts(rest) as Fields),
    ...(labels === undefined ? {} : { labels: namesOf(labels, 'label') }),
    ...(assignees === undefined ? {} : { assignees: namesOf(assignees, 'assignee') }),
  }
}

const OPERATIONS: Record<string, WorkReader> = {
  'file.create': (node) => ({ action: 'createFile', input: readCommit(node) }),
  'file.edit': (node, { report }) => {
    const message =
      'A file that has the content already is left as it is here: there is no commit, and n8n makes one.'
    report('items', 'parameters.operation', message, 'edit')
    return { action: 'editFile', input: readCommit(node) }
  },
  'file.delete': (node) => ({ action: 'deleteFile', input: readChange(node) }),
  'file.get': readFile,
  'file.list': (node) => ({ action: 'listFiles', input: { ...of(node), ...pathOf(node) } }),
  'issue.create': plain('createIssue', ({ parameters }) => ({
    title: wordsOf(parameters.title),
    ...(parameters.body ? { body: wordsOf(parameters.body) } : {}),
    labels: namesOf(parameters.labels, 'label'),
    assignees: namesOf(parameters.assignees, 'assignee'),
  })),
  'issue.createComment': plain('commentOnIssue', (node) => ({ ...issueOf(node), ...saidOf(node) })),
  'issue.edit': plain('editIssue', (node) => ({ ...issueOf(node), ...editedOf(node) })),
  'issue.get': plain('getIssue', issueOf),
  'pullRequest.create': plain('createPull', ({ parameters }) =>
    keepGiven({
      ...{ title: parameters.title, head: parameters.head, base: parameters.base },
      ...{ body: parameters.body ?? '', draft: parameters.draft ?? false },
    }),
  ),
  'pullRequest.update': plain('editPull', (node) => ({
    ...pullOf(node),
    ...keepGiven(readOptionFields(node, 'editFields')),
  })),
  'pullRequest.close': plain('editPull', (node) => ({ ...pullOf(node), state: 'closed' })),
  'pullRequest.reopen': plain('editPull', (node) => ({ ...pullOf(node), state: 'open' })),
  'pullRequest.get': plain('getPull', pullOf),
  'pullRequest.createComment': plain('commentOnIssue', (node) => ({ ...pullIssueOf(node), ...saidOf(node) })),
  'pullRequest.editComment': plain('editComment', (node) => ({
    comment: keepTexts(node.parameters.commentId ?? ''),
    ...saidOf(node),
  })),
  'release.create': plain('createRelease', (node) => ({
    ...(keepTexts(readOptionFields(node, 'additionalFields')) as Fields),
    tag_name: keepText(node.parameters.releaseTag ?? ''),
  })),
  'release.delete': plain('deleteRelease', releaseOf, '{"success": true}'),
  'release.get': plain('getRelease', releaseOf),
  'release.getAll': plain('listReleases', mostOf),
  'release.update': plain('editRelease', (node) => ({
    ...releaseOf(node),
    ...(keepTexts(readOptionFields(node, 'additionalFields')) as Fields),
  })),
  'repository.get': plain('getRepository'),
  'repository.getLicense': plain('getLicense'),
  'repository.getIssues': plain('listIssues', filters('getRepositoryIssuesFilters')),
  'repository.getPullRequests': plain('listPulls', filters('getRepositoryPullRequestsFilters')),
  'repository.listPopularPaths': plain('listPopularPaths'),
  'repository.listReferrers': plain('listReferrers'),
  'review.create': plain('createReview', (node) => {
    const { event = 'approve' } = node.parameters
    if (isTemplate(event)) throw new Error('an expression gives the judgement of its review')
    const judgement = String(event)
      .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
      .toUpperCase()
    const { commitId, commit_id = commitId } = readOptionFields(node, 'additionalFields')
    return {
      ...pullOf(node),
      event: judgement,
      ...(judgement === 'APPROVE' ? {} : saidOf(node)),
      ...(commit_id ? { commit_id: keepText(commit_id) } : {}),
    }
  }),
  'review.get': plain('getReview', (node) => ({ ...pullOf(node), ...reviewOf(node) })),
  'review.getAll': plain('listReviews', (node) => ({ ...pullOf(node), ...mostOf(node) })),
  'review.update': plain('editReview', (node) => ({ ...pullOf(node), ...reviewOf(node), ...saidOf(node) })),
  'user.getRepositories': (node) => ({
    action: 'listUserRepositories',
    input: { user: ownerOf(node), ...mostOf(node) },
  }),
  'user.getUserIssues': (node) => ({ action: 'listOwnIssues', input: filters('getUserIssuesFilters')(node) }),
  'user.invite': ({ parameters }) => ({
    action: 'invite',
    input: { organization: keepText(parameters.organization ?? ''), email: keepText(parameters.email ?? '') },
  }),
  'organization.getRepositories': (node) => ({
    action: 'listOrganizationRepositories',
    input: { organization: ownerOf(node), ...mostOf(node) },
  }),
  'organization.getMembers': (node) => ({
    action: 'listMembers',
    input: { organization: ownerOf(node), ...mostOf(node) },
  }),
  'workflow.get': plain('getWorkflow', workflowOf),
}

/** n8n leaves a slash at the end of a path out. */
function pathOf({ parameters }: SourceNode): { path: unknown } {
  const { filePath } = parameters
  if (isTemplate(filePath)) return { path: `={{ String(${writeCode(filePath)} ?? '').replace(/\\/$/, '') }}` }
  return { path: writeLiteral((plainText(filePath) ?? '').replace(/\/$/, '')) }
}

function readChange(node: SourceNode): Fields {
  const { author, committer, branch } = readOptionFields(node, 'additionalParameters')
  const { branch: name } = objectOf(branch)
  return {
    ...of(node),
    ...pathOf(node),
    message: keepText(node.parameters.commitMessage ?? ''),
    ...(author ? { author: keepTexts(author) } : {}),
    ...(committer ? { committer: keepTexts(committer) } : {}),
    ...(name ? { branch: keepText(name) } : {}),
  }
}

const BASE64 =
  '/^([0-9a-zA-Z+/][0-9a-zA-Z+/][0-9a-zA-Z+/][0-9a-zA-Z+/])*([0-9a-zA-Z+/][0-9a-zA-Z+/]==|[0-9a-zA-Z+/][0-9a-zA-Z+/][0-9a-zA-Z+/]=)?$/'

/** n8n takes a text that could be Base64 for content that is encoded already. */
function readCommit(node: SourceNode): Fields {
  const { binaryData = false, binaryPropertyName, fileContent = '' } = node.parameters
  if (isTemplate(binaryData)) throw new Error('an expression says whether it commits a file of the item')
  if (binaryData === true) return { ...readChange(node), file: fileOf(binaryPropertyName) }
  const choose = (yes: string, no: string) =>
    `={{ (text => ${BASE64}.test(text) ? ${yes} : ${no})(${writeCode(fileContent)}\n) }}`
  return { ...readChange(node), text: choose('null', 'text'), base64: choose('text', 'null') }
}

function readFile(node: SourceNode, { report }: Parameters<WorkReader>[1]): ServiceWork {
  const { asBinaryProperty = true, binaryPropertyName = 'data' } = node.parameters
  const { reference } = readOptionFields(node, 'additionalParameters')
  if (isTemplate(asBinaryProperty)) throw new Error('an expression says whether it downloads the file')
  const input = { ...of(node), ...pathOf(node), ...(reference ? { ref: keepText(reference) } : {}) }
  if (asBinaryProperty === false) return { action: 'getFile', input }
  const message =
    'The type of the file is application/octet-stream here. n8n tells it by the name of the file.'
  report('items', 'parameters.asBinaryProperty', message, true)
  return { action: 'downloadFile', input, passes: true, file: keepText(binaryPropertyName) }
}
