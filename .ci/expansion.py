"""The template as SAM expands it on deployment, and small views of it."""

import os

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")  # any will do: nothing is called


class NoManagedPolicies:
    """The template writes its policies out, so none has to be looked up."""

    def load(self):
        return {}


def source(path):
    """The template as it is written."""
    with open(path, encoding="utf-8") as f:
        return yaml_parse(f.read())


def expand(path):
    """The plain CloudFormation that SAM makes of the template."""
    template = source(path)
    for name, r in template["Resources"].items():
        if r["Type"] == "AWS::Serverless::Function":
            r["Properties"]["CodeUri"] = "s3://built/" + name  # what sam package puts there
    return transform(template, {}, NoManagedPolicies())


def of_type(template, kind):
    """The properties of the resources of one type, by name."""
    return {n: r["Properties"] for n, r in template["Resources"].items() if r["Type"] == kind}


def listed(x):
    return x if isinstance(x, list) else [x]


# The domain that is created, or the one that was brought.
DOMAIN = {"Fn::If": ["CreateDomain", {"Fn::Sub": "holdfast-${Stage}"}, {"Ref": "OpenSearchDomainName"}]}


def place(resource):
    """A short name for what a policy's resource points to.

    The table, queue or log group itself is its logical name; its stream, an
    index of it or a path of a domain follow after a slash. Which account,
    region and partition it is in goes without saying; a star does not.
    """
    if isinstance(resource, str):
        return resource
    (function, argument), = resource.items()
    if function == "Fn::GetAtt":
        name, attribute = argument if isinstance(argument, list) else argument.split(".")
        return {"Arn": name, "StreamArn": name + "/stream"}.get(attribute, f"{name}.{attribute}")
    if function == "Fn::Sub":
        text, given = argument if isinstance(argument, list) else (argument, {})
        if given not in ({}, {"Domain": DOMAIN}):
            return str(resource)
        prefix = "arn:${AWS::Partition}:es:${AWS::Region}:${AWS::AccountId}:"
        return text.removeprefix(prefix).replace(".Arn}", "}").replace("${DocumentsTable}", "DocumentsTable")
    return str(resource)


def granted(template):
    """What each function may do: {function: {place: {action, …}}}."""
    may = {}
    for name, p in of_type(template, "AWS::Lambda::Function").items():
        mine = may.setdefault(name, {})
        for statement in role_statements(template, p["Role"]["Fn::GetAtt"][0]):
            for resource in listed(statement["Resource"]):
                mine.setdefault(place(resource), set()).update(listed(statement["Action"]))
    return may


def role_statements(template, role):
    """The statements of a role's inline policies and of what is attached to it."""
    for policy in template["Resources"][role]["Properties"].get("Policies", []):
        yield from listed(policy["PolicyDocument"]["Statement"])
    for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::RolePolicy"):
        for p in of_type(template, kind).values():
            if {"Ref": role} in listed(p.get("Roles", [])) or p.get("RoleName") == {"Ref": role}:
                yield from listed(p["PolicyDocument"]["Statement"])
