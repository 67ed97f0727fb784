/**
 * Every type that a node's failure may have, besides `Http<status>`. Users read them in `{error: {type}}`;
 * the metrics count failures by them.
 */
export const FAILURE_TYPES = [
  // Caused by the graph or its data.
  'ExpressionFailed',
  'ExpressionLimit',
  'CodeFailed',
  'CodeLimit',
  'InvalidConfig',
  'InvalidInput',
  'InvalidResponse',
  'InputTooLarge',
  'OutputTooLarge',
  'TooManyItems',
  'NodeTimedOut',
  'StopAndError',
  'UnknownNodeType',
  // A request without a response that could be read. A status of 400 or more is Http<status>.
  'HttpAborted',
  'HttpNetwork',
  'HttpRedirect',
  'HttpRefusedAddress',
  'HttpRefusedHost',
  'HttpTimeout',
  'HttpTooLarge',
  // The pages of a request come round again, or are too many.
  'PagesEndless',
  // The credential is gone, or the other side no longer takes it.
  'CredentialBroken',
  'CredentialMissing',
  // Its token server gives no token at the moment.
  'CredentialUnavailable',
  // The file is not one of this execution, or is too large for it.
  'FileMissing',
  'FileTooLarge',
  // A database: it refused the statement, took too long, could not be reached, or the outcome is unknown.
  'DatabaseFailed',
  'DatabaseTimeout',
  'DatabaseUncertain',
  'DatabaseUnreachable',
  // A mail or a message that the other side did not take, or perhaps did.
  'ChatRefused',
  'ChatUncertain',
  'MailUncertain',
  'SmtpAuth',
  'SmtpNetwork',
  'SmtpRefused',
  'SmtpTls',
  // A model: its vendor refused the call, or cannot be reached or answer now; its answer is of no use; a budget is used
  // up; the price that a budget needs is not known. A tool's server answered with an error, or the outcome of the call
  // is unknown.
  'AgentOutOfSteps',
  'BudgetExceeded',
  'ModelAnswer',
  'ModelRefused',
  'ModelUnavailable',
  'ModelUnpriced',
  'OutcomeUnknown',
  'ToolRefused',
  // A text that a guardrail has blocked, and no edge leads on; a check that could not be made now.
  'GuardrailBlocked',
  'GuardrailUnavailable',
  // A node that waited for an answer from outside the run.
  'Abandoned',
  'SubWorkflowCancelled',
  'SubWorkflowDeleted',
  'SubWorkflowFailed',
  'SubWorkflowRefused',
  // Not caused by the node.
  'ExecutionDeleted',
  'ExecutionEnded',
  'ExpressionsBusy',
  'ExpressionsUnavailable',
  'Infrastructure',
  'InternalError',
  'RunRefused',
  'WorkerBusy',
  'WorkerLost',
  'WorkerShutdown',
  // An error that a runner did not expect.
  'Error',
] as const

export type FailureType = (typeof FAILURE_TYPES)[number] | `Http${number}`
